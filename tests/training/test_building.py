"""C files are compiled once, and no failure to do so is more than a message."""

import os
import threading
from pathlib import Path

import pytest

from caveat.training import building
from caveat.training.building import NoLibraryError, cache_home, library

ANSWER = "int answer(void) { return 42; }"


def has_compiler():
    try:
        return bool(building._compiler())
    except NoLibraryError:
        return False


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C compiler")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CAVEAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(building.tempfile, "tempdir", str(tmp_path))
    return tmp_path / "cache" / "compiled"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "answer.c"
    path.write_text(ANSWER)
    return path


def compiled_at_all(monkeypatch):
    """How often the compiler is called from now on."""
    calls = []
    real = building._compile
    monkeypatch.setattr(building, "_compile", lambda *a: (calls.append(1), real(*a))[1])
    return calls


@needs_compiler
def test_it_is_compiled_once_and_kept(cache, source, monkeypatch):
    calls = compiled_at_all(monkeypatch)
    assert [library(source).answer() for _ in range(3)] == [42] * 3
    assert len(calls) == 1
    (kept,) = cache.iterdir()
    assert kept.name.startswith("answer-") and kept.suffix == ".so"
    source.write_text(ANSWER.replace("42", "43"))
    assert library(source).answer() == 43 and len(calls) == 2


@needs_compiler
def test_another_processor_has_its_own(cache, source, monkeypatch):
    library(source)
    monkeypatch.setattr(building, "_processor", lambda: "another")
    library(source)
    assert len(list(cache.iterdir())) == 2


@needs_compiler
def test_many_may_build_at_once(cache, source):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(library(source).answer()))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [42] * 6
    assert len(list(cache.iterdir())) == 1  # and no half-written file beside it


@needs_compiler
def test_a_damaged_file_is_built_again(cache, source, monkeypatch):
    library(source)
    (kept,) = cache.iterdir()
    # A loaded file must not be written to: another takes its place.
    broken = kept.with_name("broken")
    broken.write_bytes(b"no library")
    broken.chmod(0o500)
    broken.replace(kept)
    assert library(source).answer() == 42


@pytest.fixture
def no_cache(tmp_path, monkeypatch):
    """A cache that cannot be, and a folder of temporary files."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CAVEAT_CACHE", str(tmp_path / "file" / "cache"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(building.tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@needs_compiler
def test_without_a_cache_it_is_kept_among_temporary_files(
    no_cache, source, monkeypatch
):
    calls = compiled_at_all(monkeypatch)
    assert [library(source).answer() for _ in range(2)] == [42, 42]
    assert len(calls) == 1
    (folder,) = no_cache.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700


@needs_compiler
@pytest.mark.parametrize("trap", ["shared", "link"])
def test_a_temporary_folder_that_others_prepared_is_not_used(no_cache, source, trap):
    place = building._in_temporary()
    elsewhere = no_cache / "elsewhere"
    elsewhere.mkdir()
    if trap == "link":
        place.symlink_to(elsewhere)
    else:
        place.mkdir()
        place.chmod(0o777)
    assert library(source).answer() == 42
    assert list(place.iterdir()) == list(elsewhere.iterdir()) == []


@needs_compiler
def test_a_file_that_cannot_be_kept_is_used_all_the_same(cache, source, monkeypatch):
    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr(building.shutil, "copyfile", full)
    assert library(source).answer() == 42
    assert list(cache.iterdir()) == []


@needs_compiler
def test_what_others_can_write_is_not_loaded(cache, source):
    library(source)
    (kept,) = cache.iterdir()
    planted = kept.with_name("planted")
    planted.write_bytes(b"not ours")
    planted.chmod(0o777)
    planted.replace(kept)
    assert library(source).answer() == 42
    cache.chmod(0o777)
    assert building._folder() != cache
    assert library(source).answer() == 42


def test_no_compiler_is_said(cache, source, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(NoLibraryError, match="no C compiler: no-such-compiler"):
        library(source)


@needs_compiler
def test_a_compiler_may_be_named_with_options(cache, tmp_path, monkeypatch):
    path = tmp_path / "answer.c"
    path.write_text("int answer(void) { return ANSWER; }")
    monkeypatch.setenv("CC", " ".join([*building._compiler(), "-DANSWER=7"]))
    assert library(path).answer() == 7


@needs_compiler
def test_bad_code_is_said_and_leaves_nothing(cache, source):
    source.write_text("int answer(void) { return }")
    with pytest.raises(NoLibraryError, match=r"could not compile answer\.c"):
        library(source)
    assert list(cache.iterdir()) == []


def test_a_compiler_that_cannot_be_run_is_said(cache, source, tmp_path, monkeypatch):
    program = tmp_path / "cc"
    program.write_text("not a program")
    program.chmod(0o700)
    monkeypatch.setenv("CC", str(program))
    with pytest.raises(NoLibraryError):
        library(source)


def test_a_source_that_is_not_there_is_said(cache):
    with pytest.raises(NoLibraryError, match="source is not there"):
        library(Path("no.c"))


def test_windows_does_without(source, monkeypatch):
    monkeypatch.setattr(building.sys, "platform", "win32")
    with pytest.raises(NoLibraryError, match="Windows"):
        library(source)


def test_the_cache_is_where_caches_are(monkeypatch, tmp_path):
    monkeypatch.delenv("CAVEAT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if os.name == "posix" and building.sys.platform != "darwin":
        assert cache_home() == tmp_path / "caveat"
    monkeypatch.setenv("CAVEAT_CACHE", "~/elsewhere")
    assert cache_home() == Path.home() / "elsewhere"
