"""Links and settings of a checkout that point out of it: nothing is written there."""

from __future__ import annotations

import os
import sys

import pytest

from tensortrail.analyzer.judging.cache_folder import FILE
from tensortrail.files import leads_out, write

from .attacked import BAD, FIX, FIXED, Attacked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
CACHE = ".tensortrail_cache"


@pytest.mark.parametrize("target", ["profile", "new_file"])
def test_a_cache_file_that_is_a_link_is_not_written(attacked: Attacked, target: str) -> None:
    attacked.write("bad.py", BAD)
    cache = attacked.project / CACHE
    cache.mkdir()
    for name in (FILE, "findings.json", ".gitignore", "CACHEDIR.TAG"):
        (cache / name).symlink_to(attacked.outside / target)
    done = attacked.check(".", cache=True)
    assert done.found("bad.py") == ["DEV501"]
    assert "no cache is kept" in done.out
    assert attacked.nothing_happened_outside()


@pytest.mark.parametrize("repository", [True, False])
@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_cache_folder_that_is_a_link_is_not_written(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch, repository: bool, elsewhere: bool
) -> None:
    if not repository:
        (attacked.project / ".git").rmdir()
    attacked.write("bad.py", BAD)
    attacked.write("pyproject.toml", "[tool.tensortrail]\n")
    (attacked.project / CACHE).symlink_to(attacked.outside)
    if elsewhere:
        monkeypatch.chdir("/")
        done = attacked.check(str(attacked.project), cache=True)
        assert "DEV501" in done.out
        assert "no cache is kept" in done.out
        assert attacked.nothing_happened_outside()
        return
    done = attacked.check(".", cache=True)
    assert done.found("bad.py") == ["DEV501"]
    assert "no cache is kept" in done.out
    assert attacked.nothing_happened_outside()


@pytest.mark.parametrize("place", ["..", "../outside", "{outside}", "sub/../.."])
def test_a_checkout_cannot_put_the_cache_outside(attacked: Attacked, place: str) -> None:
    attacked.write("bad.py", BAD)
    place = place.format(outside=attacked.outside)
    attacked.write("pyproject.toml", f"[tool.tensortrail]\ncache-dir = {place!r}\n")
    done = attacked.check(".", cache=True)
    assert done.code == 2
    assert "outside the project" in done.err
    assert attacked.nothing_happened_outside()


def test_whoever_runs_it_can_put_the_cache_anywhere(attacked: Attacked) -> None:
    attacked.write("bad.py", BAD)
    attacked.check(".", "--cache-dir", str(attacked.outside / "cache"), cache=True)
    assert (attacked.outside / "cache" / FILE).exists()


def test_a_cache_in_a_folder_of_other_files_is_refused(attacked: Attacked) -> None:
    """Its `.gitignore` would hide them from git, and from every later check."""
    attacked.write("src/bad.py", BAD)
    attacked.write("pyproject.toml", '[tool.tensortrail]\ncache-dir = "src"\n')
    for _ in range(2):
        done = attacked.check("src", cache=True)
        assert done.found("src/bad.py") == ["DEV501"]
        assert "a folder of other files" in done.out
    assert os.listdir("src") == ["bad.py"]


def test_a_folder_link_out_of_the_tree_is_not_entered(attacked: Attacked) -> None:
    attacked.write("bad.py", BAD)
    (attacked.project / "lib").symlink_to(attacked.outside, target_is_directory=True)
    (attacked.project / "one.py").symlink_to(attacked.outside / "precious.py")
    done = attacked.check(".", *FIX)
    assert "2 links out of the project not followed: lib, one.py" in done.err
    assert (attacked.project / "bad.py").read_text() == FIXED
    assert attacked.nothing_happened_outside()


def test_a_tree_without_a_repository_ends_where_it_was_named(attacked: Attacked) -> None:
    (attacked.project / ".git").rmdir()
    attacked.write("bad.py", BAD)
    (attacked.project / "lib").symlink_to(attacked.outside, target_is_directory=True)
    done = attacked.check(".", *FIX)
    assert "lib" in done.err
    assert attacked.nothing_happened_outside()


def test_a_link_within_the_project_is_entered(attacked: Attacked) -> None:
    attacked.write("shared/bad.py", BAD)
    attacked.write("src/x.py", "")
    (attacked.project / "src" / "lib").symlink_to("../shared", target_is_directory=True)
    assert attacked.check("src").found("src/lib/bad.py") == ["DEV501"]


@pytest.mark.parametrize("name", ["one.py", "lib/precious.py"])
@pytest.mark.parametrize("how", [FIX, ("--add-ignores",)])
@pytest.mark.parametrize("repository", [True, False])
def test_a_link_named_outright_is_read_and_not_written(
    attacked: Attacked, name: str, how: tuple[str, ...], repository: bool
) -> None:
    if not repository:
        (attacked.project / ".git").rmdir()
    (attacked.project / "lib").symlink_to(attacked.outside, target_is_directory=True)
    (attacked.project / "one.py").symlink_to("../outside/precious.py")
    attacked.write("bad.py", BAD)
    done = attacked.check(name, "bad.py", *how)
    assert "leads out of the project" in done.err
    assert attacked.nothing_happened_outside()
    assert (attacked.project / "bad.py").read_text() != BAD


def test_an_output_file_that_is_a_link_is_not_written(attacked: Attacked) -> None:
    attacked.write("bad.py", BAD)
    (attacked.project / "report.txt").symlink_to(attacked.outside / "profile")
    done = attacked.check("bad.py", "--output-file", "report.txt")
    assert done.code == 2
    assert "leads out of the project" in done.err
    assert attacked.nothing_happened_outside()


def test_links_of_the_machine_are_no_projects(attacked: Attacked) -> None:
    assert leads_out("/dev/stdout") == ""
    write("/dev/null", b"x")
    attacked.write("real/a.py", BAD)
    (attacked.project / "same.py").symlink_to("real/a.py")
    assert leads_out("same.py") == ""


def test_a_chain_that_leaves_and_comes_back(attacked: Attacked) -> None:
    attacked.write("a.py", BAD)
    (attacked.outside / "back").symlink_to(attacked.project)
    (attacked.project / "way").symlink_to(attacked.outside)
    assert leads_out("way/back/a.py")


def test_a_project_behind_a_link_of_the_user_is_as_any_other(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home on another disk, a folder of projects that is a link."""
    attacked.write("bad.py", BAD)
    home = attacked.outside.parent / "home"
    home.symlink_to(attacked.project, target_is_directory=True)
    monkeypatch.chdir("/")
    done = attacked.check(str(home), *FIX, cache=True)
    assert "no cache" not in done.out + done.err
    assert (attacked.project / "bad.py").read_text() == FIXED
