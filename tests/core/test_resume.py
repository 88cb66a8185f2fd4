"""Folders and files from which an interrupted computation resumes."""

from mixda._core.resume import open_cache_folder


def test_a_checkpoint_folder_is_created_with_those_above_it(tmp_path):
    folder = tmp_path / "runs" / "first"
    assert open_cache_folder(folder) == folder
    assert folder.is_dir()
