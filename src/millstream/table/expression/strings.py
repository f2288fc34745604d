"""Methods of strings and bytes.

Promises: PyFlink's names.
Does not know: how strings are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.table.expression.terms import Term, applied, symbol

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Strings(Term):
    """What can be computed of a string."""

    __slots__ = ()

    char_length = applied("CHAR_LENGTH", "The number of characters.")
    upper_case = applied("UPPER", "In upper case.")
    lower_case = applied("LOWER", "In lower case.")
    init_cap = applied("INITCAP", "Each word with a capital.")
    from_base64 = applied("FROM_BASE64", "What base 64 stands for.")
    to_base64 = applied("TO_BASE64", "In base 64.")
    ascii = applied("ASCII", "The number of the first character.")
    chr = applied("CHR", "The character of a number.")
    reverse = applied("REVERSE", "Backwards.")
    md5 = applied("MD5", "The MD5 hash.")
    sha1 = applied("SHA1", "The SHA-1 hash.")
    sha224 = applied("SHA224", "The SHA-224 hash.")
    sha256 = applied("SHA256", "The SHA-256 hash.")
    sha384 = applied("SHA384", "The SHA-384 hash.")
    sha512 = applied("SHA512", "The SHA-512 hash.")

    def inet_aton(self) -> Expression:
        """An IPv4 address as a number."""
        return self._call("INET_ATON", self)

    def inet_ntoa(self) -> Expression:
        """A number as an IPv4 address."""
        return self._call("INET_NTOA", self)

    def sha2(self, hash_length: Any) -> Expression:
        """The SHA-2 hash of so many bits."""
        return self._call("SHA2", self, hash_length)

    def concat(self, other: Any) -> Expression:
        """Both strings."""
        return self._call("||", self, other)

    def starts_with(self, start_expr: Any) -> Expression:
        """Whether the string begins with another."""
        return self._call("STARTSWITH", self, start_expr)

    def ends_with(self, end_expr: Any) -> Expression:
        """Whether the string ends with another."""
        return self._call("ENDSWITH", self, end_expr)

    def substring(self, begin_index: Any, length: Any = None) -> Expression:
        """A part of the string."""
        return self._call("SUBSTRING", self, begin_index, *([] if length is None else [length]))

    def substr(self, begin_index: Any, length: Any = None) -> Expression:
        """A part of the string."""
        return self.substring(begin_index, length)

    def translate(self, from_str: Any, to_str: Any) -> Expression:
        """With characters replaced one by one."""
        return self._call("TRANSLATE", self, from_str, to_str)

    def trim_leading(self, character: Any = None) -> Expression:
        """Without characters at the beginning."""
        return self._call("TRIM", symbol("LEADING"), " " if character is None else character, self)

    def trim_trailing(self, character: Any = None) -> Expression:
        """Without characters at the end."""
        return self._call("TRIM", symbol("TRAILING"), " " if character is None else character, self)

    def trim(self, character: Any = None) -> Expression:
        """Without characters at both ends."""
        return self._call("TRIM", symbol("BOTH"), " " if character is None else character, self)

    def ltrim(self, trim_str: Any = None) -> Expression:
        """Without characters at the beginning."""
        return self._call("LTRIM", self, *([] if trim_str is None else [trim_str]))

    def rtrim(self, trim_str: Any = None) -> Expression:
        """Without characters at the end."""
        return self._call("RTRIM", self, *([] if trim_str is None else [trim_str]))

    def btrim(self, trim_str: Any = None) -> Expression:
        """Without characters at both ends."""
        return self._call("BTRIM", self, *([] if trim_str is None else [trim_str]))

    def replace(self, search: Any = None, replacement: Any = None) -> Expression:
        """With a part replaced."""
        return self._call("REPLACE", self, search, replacement)

    def like(self, pattern: Any = None, escape: Any = None) -> Expression:
        """Whether the string matches a pattern."""
        return self._call("LIKE", self, pattern, *([] if escape is None else [escape]))

    def similar(self, pattern: Any = None) -> Expression:
        """Whether the string matches a SQL regular expression."""
        return self._call("SIMILAR TO", self, pattern)

    def position(self, haystack: Any = None) -> Expression:
        """Where this string begins in another."""
        return self._call("POSITION", self, haystack)

    def lpad(self, length: Any, pad: Any) -> Expression:
        """Filled on the left."""
        return self._call("LPAD", self, length, pad)

    def rpad(self, length: Any, pad: Any) -> Expression:
        """Filled on the right."""
        return self._call("RPAD", self, length, pad)

    def overlay(self, new_string: Any, starting: Any, length: Any = None) -> Expression:
        """With a part replaced."""
        return self._call("OVERLAY", self, new_string, starting, *([] if length is None else [length]))

    def regexp(self, regex: Any) -> Expression:
        """Whether a regular expression matches."""
        return self._call("REGEXP", self, regex)

    def regexp_count(self, regex: Any) -> Expression:
        """How often a regular expression matches."""
        return self._call("REGEXP_COUNT", self, regex)

    def regexp_replace(self, regex: Any, replacement: Any) -> Expression:
        """With every match replaced."""
        return self._call("REGEXP_REPLACE", self, regex, replacement)

    def regexp_extract(self, regex: Any, extract_index: Any = None) -> Expression:
        """A match or a group of it."""
        return self._call("REGEXP_EXTRACT", self, regex, *([] if extract_index is None else [extract_index]))

    def regexp_extract_all(self, regex: Any, extract_index: Any = None) -> Expression:
        """All matches of a group."""
        return self._call("REGEXP_EXTRACT_ALL", self, regex, *([] if extract_index is None else [extract_index]))

    def regexp_instr(self, regex: Any) -> Expression:
        """Where a regular expression first matches."""
        return self._call("REGEXP_INSTR", self, regex)

    def regexp_substr(self, regex: Any) -> Expression:
        """The first match."""
        return self._call("REGEXP_SUBSTR", self, regex)

    def repeat(self, n: Any) -> Expression:
        """So many times."""
        return self._call("REPEAT", self, n)

    def decode(self, charset: Any) -> Expression:
        """Bytes as a string."""
        return self._call("DECODE", self, charset)

    def encode(self, charset: Any) -> Expression:
        """A string as bytes."""
        return self._call("ENCODE", self, charset)

    def left(self, length: Any) -> Expression:
        """The first characters."""
        return self._call("LEFT", self, length)

    def right(self, length: Any) -> Expression:
        """The last characters."""
        return self._call("RIGHT", self, length)

    def instr(self, s: Any) -> Expression:
        """Where another string begins in this one."""
        return self._call("INSTR", self, s)

    def locate(self, s: Any, pos: Any = None) -> Expression:
        """Where this string begins in another."""
        return self._call("LOCATE", self, s, *([] if pos is None else [pos]))

    def parse_url(self, part_to_extract: Any, key: Any = None) -> Expression:
        """A part of a URL."""
        return self._call("PARSE_URL", self, part_to_extract, *([] if key is None else [key]))

    def printf(self, *obj: Any) -> Expression:
        """Values written by this template."""
        return self._call("PRINTF", self, *obj)

    def url_decode(self) -> Expression:
        """What a URL-encoded string stands for."""
        return self._call("URL_DECODE", self)

    def url_encode(self) -> Expression:
        """As part of a URL."""
        return self._call("URL_ENCODE", self)

    def split(self, delimiter: Any) -> Expression:
        """The parts between separators."""
        return self._call("SPLIT", self, delimiter)

    def split_index(self, separator: Any, index: Any) -> Expression:
        """One of the parts between separators."""
        return self._call("SPLIT_INDEX", self, separator, index)

    def str_to_map(self, list_delimiter: Any = None, key_value_delimiter: Any = None) -> Expression:
        """A map from text."""
        if list_delimiter is None or key_value_delimiter is None:
            return self._call("STR_TO_MAP", self)
        return self._call("STR_TO_MAP", self, list_delimiter, key_value_delimiter)

    def elt(self, expr: Any, *exprs: Any) -> Expression:
        """The string at this index."""
        return self._call("ELT", self, expr, *exprs)
