"""Functions of strings and bytes as methods of expressions.

Promises: PyFlink's names.
Does not know: how strings are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.table.expression.terms import Term, function_property, symbol

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Strings(Term):
    """Functions of strings and bytes."""

    __slots__ = ()

    char_length = function_property("CHAR_LENGTH", "The number of characters.")
    upper_case = function_property("UPPER", "The string in upper case.")
    lower_case = function_property("LOWER", "The string in lower case.")
    init_cap = function_property(
        "INITCAP", "The string with the first letter of each word in upper case and the others in lower case."
    )
    from_base64 = function_property("FROM_BASE64", "The string decoded from base 64.")
    to_base64 = function_property("TO_BASE64", "The string encoded in base 64.")
    ascii = function_property("ASCII", "The ASCII code of the first character.")
    chr = function_property("CHR", "The character of an ASCII code.")
    reverse = function_property("REVERSE", "The string in reverse order.")
    md5 = function_property("MD5", "The MD5 hash.")
    sha1 = function_property("SHA1", "The SHA-1 hash.")
    sha224 = function_property("SHA224", "The SHA-224 hash.")
    sha256 = function_property("SHA256", "The SHA-256 hash.")
    sha384 = function_property("SHA384", "The SHA-384 hash.")
    sha512 = function_property("SHA512", "The SHA-512 hash.")

    def inet_aton(self) -> Expression:
        """Convert an IPv4 address to a number."""
        return self._call("INET_ATON", self)

    def inet_ntoa(self) -> Expression:
        """Convert a number to an IPv4 address."""
        return self._call("INET_NTOA", self)

    def sha2(self, hash_length: Any) -> Expression:
        """Return the SHA-2 hash with 224, 256, 384 or 512 bits in hexadecimal digits."""
        return self._call("SHA2", self, hash_length)

    def concat(self, other: Any) -> Expression:
        """Append another string."""
        return self._call("||", self, other)

    def starts_with(self, start_expr: Any) -> Expression:
        """Return whether the string starts with another."""
        return self._call("STARTSWITH", self, start_expr)

    def ends_with(self, end_expr: Any) -> Expression:
        """Return whether the string ends with another."""
        return self._call("ENDSWITH", self, end_expr)

    def substring(self, begin_index: Any, length: Any = None) -> Expression:
        """Return a substring.

        Args:
            begin_index: The position of its first character, from 1.
            length: The number of characters; by default up to the end.

        """
        return self._call("SUBSTRING", self, begin_index, *([] if length is None else [length]))

    def substr(self, begin_index: Any, length: Any = None) -> Expression:
        """Return a substring; the same as `substring`."""
        return self.substring(begin_index, length)

    def translate(self, from_str: Any, to_str: Any) -> Expression:
        """Replace each character of `from_str` by the character at the same position in `to_str`."""
        return self._call("TRANSLATE", self, from_str, to_str)

    def trim_leading(self, character: Any = None) -> Expression:
        """Remove a character, by default spaces, from the start of the string."""
        return self._call("TRIM", symbol("LEADING"), " " if character is None else character, self)

    def trim_trailing(self, character: Any = None) -> Expression:
        """Remove a character, by default spaces, from the end of the string."""
        return self._call("TRIM", symbol("TRAILING"), " " if character is None else character, self)

    def trim(self, character: Any = None) -> Expression:
        """Remove a character, by default spaces, from both ends of the string."""
        return self._call("TRIM", symbol("BOTH"), " " if character is None else character, self)

    def ltrim(self, trim_str: Any = None) -> Expression:
        """Remove characters, by default spaces, from the start of the string."""
        return self._call("LTRIM", self, *([] if trim_str is None else [trim_str]))

    def rtrim(self, trim_str: Any = None) -> Expression:
        """Remove characters, by default spaces, from the end of the string."""
        return self._call("RTRIM", self, *([] if trim_str is None else [trim_str]))

    def btrim(self, trim_str: Any = None) -> Expression:
        """Remove characters, by default spaces, from both ends of the string."""
        return self._call("BTRIM", self, *([] if trim_str is None else [trim_str]))

    def replace(self, search: Any = None, replacement: Any = None) -> Expression:
        """Replace all occurrences of a string."""
        return self._call("REPLACE", self, search, replacement)

    def like(self, pattern: Any = None, escape: Any = None) -> Expression:
        """Return whether the string matches a LIKE pattern.

        Args:
            pattern: The pattern: `%` matches any characters, `_` one character.
            escape: The escape character.

        """
        return self._call("LIKE", self, pattern, *([] if escape is None else [escape]))

    def similar(self, pattern: Any = None) -> Expression:
        """Return whether the string matches a SIMILAR TO pattern."""
        return self._call("SIMILAR TO", self, pattern)

    def position(self, haystack: Any = None) -> Expression:
        """Return the position of this string in another, from 1; 0 if it does not occur."""
        return self._call("POSITION", self, haystack)

    def lpad(self, length: Any, pad: Any) -> Expression:
        """Pad the string on the left to a length, or truncate it."""
        return self._call("LPAD", self, length, pad)

    def rpad(self, length: Any, pad: Any) -> Expression:
        """Pad the string on the right to a length, or truncate it."""
        return self._call("RPAD", self, length, pad)

    def overlay(self, new_string: Any, starting: Any, length: Any = None) -> Expression:
        """Replace a part of the string.

        Args:
            new_string: The replacement.
            starting: The position of the first replaced character, from 1.
            length: The number of replaced characters; by default the length of the replacement.

        """
        return self._call("OVERLAY", self, new_string, starting, *([] if length is None else [length]))

    def regexp(self, regex: Any) -> Expression:
        """Return whether a regular expression matches a part of the string."""
        return self._call("REGEXP", self, regex)

    def regexp_count(self, regex: Any) -> Expression:
        """Return how often a regular expression matches."""
        return self._call("REGEXP_COUNT", self, regex)

    def regexp_replace(self, regex: Any, replacement: Any) -> Expression:
        """Replace all matches of a regular expression."""
        return self._call("REGEXP_REPLACE", self, regex, replacement)

    def regexp_extract(self, regex: Any, extract_index: Any = None) -> Expression:
        """Return a group of the first match of a regular expression.

        Args:
            regex: The regular expression.
            extract_index: The number of the group; 0 is the whole match.

        """
        return self._call("REGEXP_EXTRACT", self, regex, *([] if extract_index is None else [extract_index]))

    def regexp_extract_all(self, regex: Any, extract_index: Any = None) -> Expression:
        """Return a group of all matches of a regular expression, as an array."""
        return self._call("REGEXP_EXTRACT_ALL", self, regex, *([] if extract_index is None else [extract_index]))

    def regexp_instr(self, regex: Any) -> Expression:
        """Return the position of the first match of a regular expression, from 1; 0 if there is none."""
        return self._call("REGEXP_INSTR", self, regex)

    def regexp_substr(self, regex: Any) -> Expression:
        """Return the first match of a regular expression; NULL if there is none."""
        return self._call("REGEXP_SUBSTR", self, regex)

    def repeat(self, n: Any) -> Expression:
        """Repeat the string."""
        return self._call("REPEAT", self, n)

    def decode(self, charset: Any) -> Expression:
        """Decode bytes in a character set to a string."""
        return self._call("DECODE", self, charset)

    def encode(self, charset: Any) -> Expression:
        """Encode the string in a character set to bytes."""
        return self._call("ENCODE", self, charset)

    def left(self, length: Any) -> Expression:
        """Return the first characters."""
        return self._call("LEFT", self, length)

    def right(self, length: Any) -> Expression:
        """Return the last characters."""
        return self._call("RIGHT", self, length)

    def instr(self, s: Any) -> Expression:
        """Return the position of another string in this one, from 1; 0 if it does not occur."""
        return self._call("INSTR", self, s)

    def locate(self, s: Any, pos: Any = None) -> Expression:
        """Return the position of this string in another at or after a position, from 1; 0 if it does not occur."""
        return self._call("LOCATE", self, s, *([] if pos is None else [pos]))

    def parse_url(self, part_to_extract: Any, key: Any = None) -> Expression:
        """Return a part of a URL.

        Args:
            part_to_extract: HOST, PATH, QUERY, REF, PROTOCOL, AUTHORITY, FILE or USERINFO.
            key: The parameter of the query to return.

        """
        return self._call("PARSE_URL", self, part_to_extract, *([] if key is None else [key]))

    def printf(self, *obj: Any) -> Expression:
        """Format values with this string as the template, like printf."""
        return self._call("PRINTF", self, *obj)

    def url_decode(self) -> Expression:
        """Decode a URL-encoded string."""
        return self._call("URL_DECODE", self)

    def url_encode(self) -> Expression:
        """Encode the string for a URL."""
        return self._call("URL_ENCODE", self)

    def split(self, delimiter: Any) -> Expression:
        """Split the string at a delimiter to an array."""
        return self._call("SPLIT", self, delimiter)

    def split_index(self, separator: Any, index: Any) -> Expression:
        """Split the string at a separator and return the part with an index, from 0."""
        return self._call("SPLIT_INDEX", self, separator, index)

    def str_to_map(self, list_delimiter: Any = None, key_value_delimiter: Any = None) -> Expression:
        """Parse a map from text.

        Args:
            list_delimiter: The text between entries; a comma by default.
            key_value_delimiter: The text between key and value; `=` by default.

        """
        if list_delimiter is None or key_value_delimiter is None:
            return self._call("STR_TO_MAP", self)
        return self._call("STR_TO_MAP", self, list_delimiter, key_value_delimiter)

    def elt(self, expr: Any, *exprs: Any) -> Expression:
        """Return the argument at this index, from 1."""
        return self._call("ELT", self, expr, *exprs)
