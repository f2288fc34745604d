"""Programs with files of their own."""

from __future__ import annotations

import zipfile
from pathlib import Path

from millstream.client.program import find_import_paths, run_program


def test_a_program_imports_its_python_files(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "of_a_folder.py").touch()
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "of_a_file.py").touch()
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as archive:
        archive.writestr("of_an_archive.py", "")
    program = tmp_path / "elsewhere" / "job.py"
    program.parent.mkdir()
    program.write_text("import of_a_file, of_a_folder, of_an_archive, package")
    named = [tmp_path / "package", tmp_path / "modules", tmp_path / "files" / "of_a_file.py", tmp_path / "zipped.zip"]
    run_program(str(program), configuration={"python.files": ",".join(map(str, named))})


def test_the_last_file_comes_first(tmp_path: Path) -> None:
    assert find_import_paths(f"{tmp_path}/a/x.py, file://{tmp_path}/b/x.py,") == [f"{tmp_path}/b", f"{tmp_path}/a"]
