"""A real browser (Debian's chromium with its driver); without one these tests are skipped, and say why."""

from __future__ import annotations

import shutil

import pytest

SIZES = {"wide": (1280, 1000), "narrow": (390, 844)}


def _browser():
    """A browser with a profile of its own."""
    selenium = pytest.importorskip("selenium.webdriver")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    service = shutil.which("chromedriver")
    if chromium is None or service is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return selenium.Chrome(options=options, service=selenium.ChromeService(service))


@pytest.fixture(scope="session")
def driver():
    browser = _browser()
    yield browser
    browser.quit()


@pytest.fixture
def second_driver():
    browser = _browser()
    yield browser
    browser.quit()


@pytest.fixture
def opened(driver, tmp_path):
    """Open a page in a window of a size; afterwards it must have logged no error and asked the network for nothing."""

    def show(page: str, size: str = "wide"):
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        # headless windows have a least width, so the size is that of the page and not of the window
        width, height = SIZES[size]
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "narrow"},
        )
        driver.get_log("browser")
        driver.get_log("performance")
        driver.get(path.as_uri())
        return driver

    yield show
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    asked = [e["message"] for e in driver.get_log("performance") if "Network.requestWillBeSent" in e["message"]]
    assert [m for m in asked if '"url":"http' in m] == []
