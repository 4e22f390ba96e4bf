"""Changed reports that are accepted, in a real browser: no script but ours, no request, the verdict as it was said."""

from __future__ import annotations

import doors


def test_accepted_reports_run_load_and_change_nothing(driver, tmp_path):
    assert doors.page_turn(range(8), tmp_path, driver) == []


def test_the_oracle_sees_a_page_that_is_not_ours(driver, tmp_path, monkeypatch):
    evil = "<!doctype html><p class='headline'>Not calibrated at all.</p><script>window.owned=1</script>"
    monkeypatch.setattr(doors, "drawn_page", lambda rng, folder: (evil, "Not calibrated at all.", False))
    assert "owned=True" in doors.page_turn(range(1), tmp_path, driver)[0][1]
    hidden = "<!doctype html><p class='headline' style='visibility:hidden'>Not calibrated at all.</p>"
    monkeypatch.setattr(doors, "drawn_page", lambda rng, folder: (hidden, "Not calibrated at all.", False))
    assert "seen: False" in doors.page_turn(range(1), tmp_path, driver)[0][1]
