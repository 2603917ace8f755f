// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var screenshots = flag.String("screenshots", "", "folder to write the screenshots of the documents into")

func emulate(width, height int, scheme string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		if err := emulation.SetDeviceMetricsOverride(int64(width), int64(height), 1, false).Do(ctx); err != nil {
			return err
		}
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}).Do(ctx)
	})
}

func shop(t testing.TB) (*apiServer, builder) {
	t.Helper()
	s := startAPIServer(t)
	b := builder{s, time.Now()}
	b.shop()
	return s, b
}

// The command's exit code may tell a finding.
func terminal(t *testing.T, server string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, append(args, "--server", server, "--kubeconfig", os.DevNull)...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

var spans = regexp.MustCompile(`\b(\d+(\.\d+)?(ms|h|m|s))+\b`)

func timeless(text string) string { return strings.TrimSpace(spans.ReplaceAllString(text, "SPAN")) }

// In an incident, a person finds the waiting pods, the cause, the time and the remedy, by list, map, search
// and link.
func TestIncident(t *testing.T) {
	s, _ := shop(t)
	url := serve(t, "--server", s.URL)
	b := open(t, url, 1500, 950, "light")
	b.shows("#status", "36 nodes, 1 not ready")
	b.shows("#status", "18 waiting") // twelve pods that need a volume of the dead node elsewhere, three that run there, and three that need a new one
	b.shows("#waits .card.dead", "node worker-7 is not ready for 3m")
	b.shows("#waits .card.dead", "15 wait")
	b.shows("#waits .card.dead", "NodeUnreachable 12")
	b.shows("#waits .card.dead .do", "powered off")
	if first := eval[string](b, `JSON.stringify([...document.querySelectorAll('#waits .card')].map(c => c.classList.contains('dead')))`); !strings.HasPrefix(first, "[true,false") {
		t.Errorf("the cards that are of dead nodes: %s", first)
	}
	if n := eval[int](b, `document.querySelectorAll('#waits .card.dead .waiting a').length`); n != 15 {
		t.Errorf("the card of the dead node names %d pods", n)
	}
	if command := eval[string](b, `document.querySelector('#waits .card.dead .command code').textContent`); !strings.HasSuffix(command, " taint node worker-7 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute") {
		t.Errorf("the command to copy is %q", command)
	}
	if order := eval[string](b, `moorage.map.rows.slice(0, 3).map(r => r.node.name).join()`); order != "worker-7,worker-9,worker-5" {
		t.Errorf("the map begins with %s, want the dead node and the full ones", order)
	}
	b.accessible("the overview")

	b.do(chromedp.Click(`#waits a[href*="db-0"]`, chromedp.ByQuery))
	b.shows("#panel-title", "pod shop/db-0")
	b.shows("#panel", "volume pv-vol-db")
	b.shows("#panel", "can't leave node worker-7")
	b.shows("#panel", "not ready for 3m")
	b.shows("#panel .do", "powered off")
	b.shows("#panel", "What explain says")
	b.shows("#panel", "kubectl moorage --kubeconfig /dev/null --server "+s.URL+" explain pod/db-0 -n shop -o wide")
	says := eval[string](b, `document.querySelector('#panel [data-name=explain] pre').textContent`)
	if want := terminal(t, s.URL, "explain", "pod/db-0", "-n", "shop", "-o", "wide"); timeless(says) != timeless(want) {
		t.Errorf("the page says\n%s\nand the command\n%s", says, want)
	}
	b.accessible("a pod")

	b.do(chromedp.Click(`#panel .chain a[href*="pv-vol-db"]`, chromedp.ByQuery))
	b.shows("#panel-title", "volume pv-vol-db")
	b.shows("#panel", "Where it has been")
	b.shows("#panel", "Who waits for it")
	b.shows("#panel dl", "vol-db")
	if n := eval[int](b, `document.querySelectorAll('.bar-part').length`); n < 1 {
		t.Errorf("%d bars show where the volume has been", n)
	}
	b.accessible("a volume")

	link := eval[string](b, `location.href`)
	again := open(t, link, 1500, 950, "dark")
	again.shows("#panel-title", "volume pv-vol-db")
	again.accessible("a volume, from a link, in the dark")

	b.do(chromedp.Click(`#panel .chain a[href*="worker-7"]`, chromedp.ByQuery))
	b.shows("#panel-title", "node worker-7")
	b.shows("#panel", "If it is drained")
	b.shows("#panel", "Drain plan")
	b.shows("#panel table", "data-db-0")
	plan := eval[string](b, `document.querySelector('#panel [data-name=drain] pre').textContent`)
	if want := terminal(t, s.URL, "drain-plan", "worker-7", "-o", "wide"); timeless(plan) != timeless(want) {
		t.Errorf("the page's plan is\n%s\nand the command's\n%s", plan, want)
	}
	b.accessible("a node")
	b.do(chromedp.NavigateBack())
	b.shows("#panel-title", "volume pv-vol-db")
}

// Each search and filter is in the address.
func TestSearchAndFilters(t *testing.T) {
	s, _ := shop(t)
	b := open(t, serve(t, "--server", s.URL), 1300, 900, "light")
	for typed, want := range map[string]string{"vol-db": "volume/pv-vol-db", "orders-5-2": "pod/shop/orders-5-2", "data-cart-3-": "volume/", "worker-12": "node/worker-12", "nodeunreach": "pod/shop/db-0"} {
		b.do(chromedp.Evaluate(`document.body.focus()`, nil), chromedp.KeyEvent("/"), chromedp.Evaluate(`document.getElementById('search').select()`, nil), chromedp.SendKeys("#search", typed, chromedp.ByQuery))
		b.wait(`document.querySelectorAll('#results [role=option]').length > 0`)
		if found := eval[string](b, `JSON.stringify(moorage.model.find(`+quote(typed)+`, 30))`); !strings.Contains(found, want) {
			t.Errorf("%q finds %s, want %s", typed, found, want)
		}
	}
	b.accessible("the search")
	b.do(chromedp.SendKeys("#search", kb.ArrowDown+kb.Enter, chromedp.ByQuery))
	b.wait(`document.getElementById('panel').hidden === false`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`document.getElementById('panel').hidden`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`moorage.state.q === '' && document.getElementById('search').value === ''`)

	all := eval[int](b, `moorage.map.rows.length`)
	b.do(chromedp.Click(`#legend [data-state=leaving]`, chromedp.ByQuery))
	b.wait(fmt.Sprintf(`moorage.map.rows.length < %d && location.hash.includes('state=leaving')`, all))
	if wrong := eval[int](b, `moorage.map.rows.filter(r => !r.cells.some(c => c.state === 'leaving')).length`); wrong != 0 {
		t.Errorf("%d nodes are left without a slot that the filter names", wrong)
	}
	b.do(chromedp.Evaluate(`(e => { e.value = 'mail'; e.dispatchEvent(new Event('change')); })(document.getElementById('namespace'))`, nil))
	b.wait(`location.hash.includes('ns=mail')`)
	left := eval[int](b, `moorage.map.rows.length`)
	again := open(t, eval[string](b, `location.href`), 1300, 900, "dark")
	again.wait(fmt.Sprintf(`moorage.map.rows.length === %d && document.getElementById('namespace').value === 'mail'`, left))
	again.wait(`document.querySelector('#legend [data-state=leaving]').getAttribute('aria-pressed') === 'true'`)
	again.accessible("filters, from a link, in the dark")
	b.do(chromedp.Click("#clear", chromedp.ByQuery))
	b.wait(fmt.Sprintf(`moorage.map.rows.length === %d && document.activeElement.id === 'map'`, all))
}

// The page can be used without a mouse, and without sight.
func TestKeyboard(t *testing.T) {
	s, _ := shop(t)
	b := open(t, serve(t, "--server", s.URL), 1300, 900, "light")
	b.do(chromedp.KeyEvent("m"))
	b.wait(`document.activeElement.id === 'map'`)
	told := b.text("#focus-cell")
	for _, key := range []string{kb.ArrowRight, kb.ArrowDown, kb.End, kb.PageDown, kb.Home} {
		b.do(chromedp.KeyEvent(key))
		now := eval[string](b, `document.getElementById('focus-node').textContent + document.getElementById('focus-cell').textContent`)
		if now == told || !strings.Contains(now, "worker-") {
			t.Errorf("after %q the cell is told as %q", key, now)
		}
		told = now
	}
	b.do(chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.Enter))
	b.wait(`document.activeElement.id === 'panel-title'`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`document.getElementById('panel').hidden && document.activeElement.id === 'map'`)
	b.do(chromedp.KeyEvent("n"))
	b.shows("#panel-title", "node worker-")
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("?"))
	b.wait(`document.getElementById('help').open`)
	b.accessible("the keys")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`!document.getElementById('help').open`)
}

func TestClickOnTheMap(t *testing.T) {
	s, _ := shop(t)
	b := open(t, serve(t, "--server", s.URL), 1300, 900, "light")
	b.wait(`moorage.map.painted > 0`)
	at := eval[[]float64](b, `(() => {
		const i = moorage.map.rows.findIndex(r => r.node.name === 'worker-5'), box = document.getElementById('map').getBoundingClientRect();
		const [x, y] = moorage.map.cellAt(i, 2);
		return [box.left + x + 6, box.top + y + 6 - document.getElementById('map').scrollTop];
	})()`)
	want := eval[string](b, `moorage.map.rows.find(r => r.node.name === 'worker-5').cells[2].slot.volume`)
	b.do(chromedp.MouseClickXY(at[0], at[1]))
	b.shows("#panel-title", want)
}

func TestLiveHandover(t *testing.T) {
	s := startAPIServer(t)
	w := builder{s, time.Now()}
	w.node("worker-9", 24, 0)
	w.handover()
	url, end := start(t, "--server", s.URL)
	b := open(t, url, 1300, 900, "light")
	b.shows("#status", "1 waiting")
	b.do(chromedp.Click(`#waits .waiting a`, chromedp.ByQuery))
	b.shows("#panel", "can't leave node worker-7")
	b.do(chromedp.Evaluate(`window.before = 'the same page'`, nil))

	s.remove("storage.k8s.io/v1", "VolumeAttachment", "", attachmentName("vol-db", "worker-7"))
	s.remove("v1", "Node", "", "worker-7")
	w.node("worker-9", 24, 0, "vol-db")
	w.attach("vol-db", "worker-9", time.Second, 0)
	w.hold("vol-db", "worker-9", "", "", "worker-9", "db-0")
	w.pod("shop", "db-0", "worker-9", "Running", "data-db-0", 3*time.Minute, 0)
	b.shows("#waits", "No pod waits")
	b.wait(`moorage.model.nodes.get('worker-9').drivers[0].slots.some(s => s.volume === 'pv-vol-db' && s.slot === 'used')`)
	b.shows("#panel .answer", "runs at worker-9")
	b.wait(`document.getElementById('live').textContent.includes('no longer waits')`)
	if eval[string](b, `window.before`) != "the same page" {
		t.Error("the page was loaded anew")
	}

	s.fail(true)
	b.shows("#problem", "the API server does not answer")
	s.fail(false)
	b.wait(`document.getElementById('problem').hidden || !document.getElementById('problem').innerText.includes('API server')`)

	end()
	b.shows("#problem", "kubectl moorage web does not answer")
	b.do(chromedp.Navigate("about:blank"))
	b.forgive("/stream$")
}

// No node's slots end with a line of a few, at any width.
func TestSlotsFillTheMap(t *testing.T) {
	s, _ := shop(t)
	url := serve(t, "--server", s.URL)
	for _, width := range []int{400, 700, 830, 950, 1100, 1300, 1600} {
		b := open(t, url, width, 900, "light")
		type layout struct{ PerLine, Lines, Last int }
		l := eval[layout](b, `(({perLine, lines, rows}) => ({perLine, lines, last: Math.max(...rows.map(r => r.cells.length)) - perLine * (lines - 1)}))(moorage.map)`)
		if l.Last < l.PerLine-l.Lines {
			t.Errorf("at %d pixels the slots of a node are laid out as %+v", width, l)
		}
	}
	three := startAPIServer(t)
	w := builder{three, time.Now()}
	for _, name := range []string{"worker-1", "worker-2", "worker-3"} {
		w.node(name, 24, 0)
	}
	b := open(t, serve(t, "--server", three.URL), 1300, 900, "light")
	if share := eval[float64](b, `(({labelWidth, perLine, pitch, box}) => (labelWidth + perLine * pitch) / box.clientWidth)(moorage.map)`); share < 0.8 {
		t.Errorf("three nodes take %.2f of the map's width", share)
	}
}

func TestLists(t *testing.T) {
	s, _ := shop(t)
	b := open(t, serve(t, "--server", s.URL), 1300, 900, "light")
	b.do(chromedp.Click(`#views [data-view=volumes]`, chromedp.ByQuery))
	b.shows("#table tbody tr", "NodeUnreachable")
	b.wait(`document.querySelectorAll('#table tbody tr').length === moorage.model.volumes.size && document.getElementById('map').hidden`)
	b.accessible("the list of volumes")
	again := open(t, strings.Replace(eval[string](b, `location.href`), "volumes", "waits", 1), 1300, 900, "dark")
	again.wait(`document.querySelectorAll('#table tbody tr').length === 18`)
	again.accessible("the list of who waits, in the dark")
}

func TestSession(t *testing.T) {
	s := startAPIServer(t)
	w := builder{s, time.Now()}
	w.node("worker-9", 24, 0)
	w.handover()
	b := open(t, serve(t, "--server", s.URL), 1300, 900, "light")
	b.shows("#session", "Waiting: 1 now, 1 at most")
	b.do(chromedp.Evaluate(`(({ model }) => {
		model.timed('worker-9', 'v', undefined, 'Attaching');
		model.base += 7;
		model.timed('worker-9', 'v', 'Attaching', 'InUse');
	})(moorage)`, nil))
	b.shows("#session", "1 attach, slowest 7s")
	b.wait(`document.querySelectorAll('#session circle.attach').length === 1`)
}

func TestPhone(t *testing.T) {
	s, _ := shop(t)
	b := open(t, serve(t, "--server", s.URL), 390, 800, "dark")
	if eval[int](b, `document.documentElement.scrollWidth`) > 390 {
		t.Error("the page is wider than the phone")
	}
	if scrolls := eval[string](b, `[...document.querySelectorAll('body *')].filter(e => e.scrollHeight > e.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(e).overflowY)).map(e => e.id || e.className).join()`); scrolls != "" {
		t.Errorf("besides the page itself %s scrolls", scrolls)
	}
	b.accessible("the overview on a phone")
	b.do(chromedp.Click(`#waits a[href*="db-0"]`, chromedp.ByQuery))
	b.shows("#panel", "can't leave node worker-7")
	if eval[int](b, `document.getElementById('panel').scrollWidth - document.getElementById('panel').clientWidth`) > 0 {
		t.Error("the panel is wider than the phone")
	}
	b.accessible("a pod on a phone")
}

// lost lists controls without a name, beyond the page's width, or covered.
const lost = `(scope => [...document.querySelectorAll(scope + ' :is(a[href]:not(.skip), button, input, select, summary)')].flatMap((e) => {
  e.scrollIntoView({ block: 'center', inline: 'nearest' });
  const box = e.getClientRects()[0];
  if (!box || !e.checkVisibility({ visibilityProperty: true }) || box.width === 0) return [];
  const name = e.getAttribute('aria-label') || [...(e.labels ?? [])].map((l) => l.textContent).join('') || e.textContent || e.title;
  const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  const what = e.outerHTML.slice(0, 120);
  if (!name.trim()) return ['no name: ' + what];
  if (box.right > document.documentElement.clientWidth + 1) return ['too wide: ' + what];
  return at && (e.contains(at) || at.contains(e) || [...(e.labels ?? [])].some((l) => l.contains(at))) ? [] : ['covered by ' + at?.outerHTML.slice(0, 80) + ': ' + what];
}))`

func TestPhoneOfADeadNode(t *testing.T) {
	for _, c := range []struct{ world, ref string }{{"dead-statefulset", "pod/shop/db-0"}, {"dead-node-some-wait", "pod/shop/moved"}, {"dead-node-some-wait", "node/worker-1"}} {
		s := startAPIServer(t)
		s.load(t, c.world)
		b := open(t, serve(t, "--server", s.URL), 400, 800, "light")
		b.shows("#waits", "worker-1")
		for _, fault := range eval[[]string](b, lost+`('body')`) {
			t.Errorf("%s: %s", c.world, fault)
		}
		b.do(chromedp.Evaluate(`location.hash = new URLSearchParams({sel: `+quote(c.ref)+`})`, nil))
		b.shows("#panel", "worker-1")
		b.wait(`!document.getElementById('panel').hasAttribute('aria-busy')`)
		for _, fault := range eval[[]string](b, lost+`('#panel')`) {
			t.Errorf("%s of %s: %s", c.ref, c.world, fault)
		}
		if eval[int](b, `document.documentElement.scrollWidth`) > 400 {
			t.Errorf("%s: the page is wider than the phone", c.world)
		}
		b.accessible(c.ref + " on a phone")
	}
}

func TestHostileNames(t *testing.T) {
	const hostile = `<img src=x onerror=alert(1)></script><script>alert(2)</script>"'`
	s := startAPIServer(t)
	w := builder{s, time.Now()}
	w.node("node"+hostile, 10, time.Minute, "h"+hostile)
	w.node("worker-9", 10, 0)
	w.volume("shop", "claim"+hostile, "h"+hostile)
	w.attach("h"+hostile, "node"+hostile, time.Hour, 0)
	w.hold("h"+hostile, "node"+hostile, "NodeUnreachable", hostile, "worker-9", "pod"+hostile)
	w.pod("shop", "pod"+hostile, "worker-9", "Pending", "claim"+hostile, time.Minute, 0)
	b := open(t, serve(t, "--server", s.URL), 1300, 900, "light")
	b.shows("#waits", "pod"+hostile)
	b.do(chromedp.Click(`#waits .waiting a`, chromedp.ByQuery))
	b.shows("#panel-title", "pod"+hostile)
	b.shows("#panel .chain", "node"+hostile)
	b.wait(`!document.getElementById('panel').hasAttribute('aria-busy')`)
	b.do(chromedp.SendKeys("#search", "onerror", chromedp.ByQuery))
	b.shows("#results", hostile)
	if n := eval[int](b, `document.querySelectorAll('img, body script:not([type=module])').length`); n != 0 {
		t.Errorf("%d elements were made of names", n)
	}
}

func TestClusters(t *testing.T) {
	folders, err := filepath.Glob("../../internal/kubectl/testdata/*/objects.yaml")
	if err != nil || len(folders) < 5 {
		t.Fatalf("%v: %v", folders, err)
	}
	for _, path := range folders {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			s := startAPIServer(t)
			s.load(t, name)
			b := open(t, serve(t, "--server", s.URL), 1300, 900, "light")
			for _, ref := range eval[[]string](b, `[...moorage.model.waits.keys(), ...[...moorage.model.volumes.keys()].slice(0, 5).map(k => 'volume/' + k), ...[...moorage.model.nodes.keys()].slice(0, 3).map(n => 'node/' + n)]`) {
				b.do(chromedp.Evaluate(`moorage.panel.actions.close(); location.hash = new URLSearchParams({sel: `+quote(ref)+`})`, nil))
				b.wait(`moorage.panel.ref === ` + quote(ref) + ` && (moorage.panel.detail || moorage.panel.problem)`)
				if problem := eval[string](b, `moorage.panel.problem`); problem != "" {
					t.Errorf("%s: %s", ref, problem)
				}
				if text := b.text("#panel"); strings.Contains(text, "undefined") || strings.Contains(text, "NaN") || strings.Contains(text, "[object") {
					t.Errorf("%s: the panel says\n%s", ref, text)
				}
			}
		})
	}
}

func quote(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

func TestScreenshots(t *testing.T) {
	s, _ := shop(t)
	url := serve(t, "--server", s.URL)
	for _, scheme := range []string{"light", "dark"} {
		b := open(t, url, 1280, 800, scheme)
		b.shows("#waits .card.dead", "What to do")
		b.wait(`moorage.map.painted > 0`)
		b.do(chromedp.Evaluate(`document.activeElement.blur()`, nil))
		var picture []byte
		b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
			picture, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
			return err
		}))
		if len(picture) < 20_000 || len(picture) > 300_000 {
			t.Errorf("the picture in %s has %d bytes", scheme, len(picture))
		}
		if *screenshots != "" {
			if err := os.WriteFile(filepath.Join(*screenshots, "web-"+scheme+".png"), picture, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}
