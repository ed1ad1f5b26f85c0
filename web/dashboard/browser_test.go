//go:build browser

package dashboard

// Every page in a real browser, on a phone and on a desk: none scrolls sideways, axe finds no
// fault, the policy stops nothing, and what the script does works. `make browser` runs it;
// SLUICE_SCREENSHOTS names a folder for pictures.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chrome is a browser at the dashboard, and what it complained of.
type chrome struct {
	ctx    context.Context
	base   string
	mu     sync.Mutex
	faults []string
}

// browse starts a browser in which the operator has signed in.
func (b *bundle) browse(t *testing.T) *chrome {
	t.Helper()
	done := make(chan struct{})
	b.Done, b.Every = done, time.Hour
	b.serve()
	server := httptest.NewServer(b.handler)
	t.Cleanup(func() { close(done); server.Close() })
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 14*time.Minute)
	t.Cleanup(cancel)
	c := &chrome{ctx: ctx, base: server.URL}
	chromedp.ListenTarget(ctx, c.note)
	c.do(t, cdplog.Enable(), runtime.Enable(), emulation.SetDeviceMetricsOverride(1280, 900, 1, false), emulation.SetTimezoneOverride("Europe/Berlin"),
		chromedp.Navigate(server.URL+"/"), chromedp.WaitVisible(`input[name=email]`, chromedp.ByQuery),
		chromedp.SendKeys(`input[name=email]`, b.seeded.Email, chromedp.ByQuery), chromedp.SendKeys(`input[name=password]`, b.seeded.Password+"\r", chromedp.ByQuery),
		chromedp.WaitVisible(`nav[aria-label=Sections]`, chromedp.ByQuery))
	return c
}

// note keeps what the browser complains of; that there is no such page is asked for.
func (c *chrome) note(event any) {
	fault := ""
	switch e := event.(type) {
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError && !strings.Contains(e.Entry.Text, "404 (Not Found)") {
			fault = e.Entry.Text
		}
	case *runtime.EventExceptionThrown:
		fault = e.ExceptionDetails.Error()
	}
	if fault != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults = append(c.faults, fault)
	}
}

func (c *chrome) do(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(c.ctx, actions...); err != nil {
		t.Fatal(err, c.faults)
	}
}

// text is what an expression says.
func (c *chrome) text(t *testing.T, expression string) (out string) {
	t.Helper()
	c.do(t, chromedp.Evaluate(`String(`+expression+`)`, &out))
	return out
}

// wide are the elements that reach beyond a page of a width, but for those within a box that
// scrolls. The browser's own idea of the width is no measure: on a phone it zooms out until a
// page fits.
func wide(width int64) string {
	return fmt.Sprintf(`JSON.stringify([...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > %d + 1 && !e.closest(".scroll, pre, .hide, svg"))
		.slice(0, 5).map(e => e.outerHTML.slice(0, 120)).concat(document.documentElement.scrollWidth > %[1]d ? ["the page: " + document.documentElement.scrollWidth] : []))`, width)
}

// at opens a page at a width, with everything unfolded.
func (c *chrome) at(t *testing.T, path string, width int64, scheme string) {
	t.Helper()
	c.do(t, emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Navigate(c.base+path), chromedp.WaitVisible(`main`, chromedp.ByQuery))
}

// shot takes a picture of the whole page, if pictures are wanted.
func (c *chrome) shot(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("SLUICE_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	c.do(t, chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// axeSource is axe-core, as the lock file of the tests of clients says.
func axeSource(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "e2e", "clients", "browser", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// violations are what axe finds on the page.
func (c *chrome) violations(t *testing.T, axe string) []string {
	t.Helper()
	var out string
	c.do(t, chromedp.Evaluate(axe+";0", nil),
		chromedp.Evaluate(`axe.run().then(r => JSON.stringify({passes: r.passes.length, violations: r.violations
			.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary).join(" | "))}))`,
			&out, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	var result struct {
		Passes     int
		Violations []string
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.Passes < 5 {
		t.Fatalf("axe has passed %d rules: %v", result.Passes, err)
	}
	return result.Violations
}

func TestBrowserPages(t *testing.T) {
	b := setup(t)
	f := b.fill(t)
	axe, c := axeSource(t), b.browse(t)
	for _, path := range f.pages() {
		at, query, _ := strings.Cut(path, "?")
		at = Root + at + "?" + strings.Trim(query+"&account="+f.account.ID, "&")
		name := "dashboard" + strings.ReplaceAll(strings.Split(path, "?")[0], "/", "-")
		for _, width := range []int64{390, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				c.at(t, at, width, scheme)
				kind := map[int64]string{390: "phone", 1280: "desk"}[width] + "-" + scheme
				c.shot(t, name+"."+kind)
				if got := c.text(t, wide(width)); got != "[]" {
					t.Errorf("%s, %s: %s", path, kind, got)
				}
				c.do(t, chromedp.Evaluate(`document.querySelectorAll("details").forEach(d => d.open = true)`, nil))
				if got := c.text(t, wide(width)); got != "[]" {
					t.Errorf("%s, %s, unfolded: %s", path, kind, got)
				}
				for _, v := range c.violations(t, axe) {
					t.Errorf("%s, %s: %s", path, kind, v)
				}
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fault := range c.faults {
		t.Error(fault)
	}
}

// The menu is one on a phone, with and without script.
func TestBrowserMenu(t *testing.T) {
	b := setup(t)
	c := b.browse(t)
	const shown = `getComputedStyle(document.querySelector("nav[aria-label=Sections]")).display !== "none"`
	for _, disabled := range []bool{false, true} {
		c.do(t, emulation.SetScriptExecutionDisabled(disabled))
		c.at(t, Root, 1280, "light")
		if got := c.text(t, shown); got != "true" {
			t.Error("no menu on a desk")
		}
		c.at(t, Root, 390, "light")
		if got := c.text(t, shown); got != "false" {
			t.Error("the menu of a phone is open at once")
		}
		c.do(t, chromedp.Click(`.menu summary`, chromedp.ByQuery))
		if got := c.text(t, shown); got != "true" {
			t.Errorf("the menu does not open; script is off: %v", disabled)
		}
	}
}

// Identifiers are copied whole, times are in the reader's zone if they want it, and a key
// leads to the search.
func TestBrowserScript(t *testing.T) {
	b := setup(t)
	f := b.fill(t)
	c := b.browse(t)
	c.at(t, Root+"/keys/"+f.key+"?account="+f.account.ID, 1280, "light")
	const id = `document.querySelector(".facts .id code")`
	if got := c.text(t, `(getSelection().selectAllChildren(`+id+`), getSelection().toString().trim())`); got != f.key {
		t.Errorf("selecting the id gives %q, want %s", got, f.key)
	}
	c.do(t, chromedp.Evaluate(`navigator.clipboard.writeText = async (text) => { document.title = text; }`, nil),
		chromedp.Click(`.facts .copy`, chromedp.ByQuery), chromedp.WaitVisible(`.facts .copy.done`, chromedp.ByQuery))
	if got := c.text(t, `document.title`); got != f.key {
		t.Errorf("%q is copied, want %s", got, f.key)
	}
	const exact = `document.querySelector("time.exact").textContent`
	if got := c.text(t, exact); !strings.HasSuffix(got, " UTC") {
		t.Error(got)
	}
	before, err := time.Parse("2006-01-02 15:04:05 MST", c.text(t, exact))
	if err != nil {
		t.Fatal(err)
	}
	c.do(t, chromedp.Click(`[data-zone]`, chromedp.ByQuery))
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	want := before.In(berlin).Format("2006-01-02 15:04:05")
	if got := c.text(t, exact); !strings.HasPrefix(got, want+" ") || strings.HasSuffix(got, "UTC") {
		t.Errorf("%s, want %s and the name of the zone", got, want)
	}
	c.at(t, Root+"/keys", 1280, "light") // and it stays so
	if got := c.text(t, `document.querySelector("[data-zone]").textContent`); got != "Europe/Berlin" {
		t.Error(got)
	}
	c.do(t, input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithCode("Slash").WithText("/"))
	if got := c.text(t, `document.activeElement.id + document.activeElement.value`); got != "find" {
		t.Errorf("/ leads to %q", got)
	}
	c.do(t, chromedp.KeyEvent(f.key+kb.Enter), chromedp.WaitVisible(`.other`, chromedp.ByQuery))
	if got := c.text(t, `location.pathname + location.search`); got != Root+"/keys/"+f.key+"?account="+f.account.ID {
		t.Error(got)
	}
}
