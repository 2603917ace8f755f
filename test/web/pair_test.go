// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// inFrame is an expression of what is in the frame of a side.
func inFrame(side int, expression string) string {
	return fmt.Sprintf(`(({moorage, document}) => %s)(document.querySelectorAll('iframe')[%d].contentWindow)`, expression, side)
}

func waiting(side int) string {
	return inFrame(side, `moorage?.model.ready && document.getElementById('waits').innerText`)
}

// The demo's page shows both clusters as things happen, and what is told of each; in one
// file the slider leads both to the same time, and a link leads within its side.
func TestPair(t *testing.T) {
	ours, theirs := startAPIServer(t), startAPIServer(t)
	our, their := builder{ours, time.Now()}, builder{theirs, time.Now()}
	for _, w := range []builder{our, their} {
		w.node("worker-9", 24, 0)
		w.handover()
	}
	file := filepath.Join(t.TempDir(), "demo.html")
	cmd := exec.CommandContext(t.Context(), pairPage, "--out", file, ours.URL, theirs.URL)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewScanner(out)
	if !printed.Scan() {
		t.Fatal("no address was printed")
	}
	tell := func(text string) {
		if _, err := io.WriteString(in, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	b := openPair(t, printed.Text())
	tell("# A pod moves")
	tell("0 the pod waits here")
	tell("1 and there")
	b.shows("#about", "About: A pod moves")
	b.shows(".side:nth-child(1) .told", "the pod waits here")
	b.shows(".side:nth-child(2) .told", "and there")
	for side := range 2 {
		b.wait(waiting(side) + `.includes('shop/db-0')`)
	}
	b.accessible("two clusters")
	our.pod("shop", "db-0", "worker-9", "Running", "data-db-0", 3*time.Minute, 0)
	b.wait(waiting(0) + `.includes('No pod waits')`)
	tell("0 it runs")
	tell("# The end")
	tell("1 it still waits")
	b.shows(".side:nth-child(2) .told", "it still waits")
	if text := eval[string](b, waiting(1)); text == "" {
		t.Error("the other side shows nobody who waits")
	}
	b.do(chromedp.Navigate("about:blank"))
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}

	b = openPair(t, "file://"+file)
	b.wait(`moorage.player`)
	for side := range 2 {
		b.wait(inFrame(side, `document.body.classList.contains('pane')`))
	}
	b.do(chromedp.Focus("#time-at", chromedp.ByQuery), chromedp.KeyEvent(kb.End))
	b.wait(waiting(0) + `.includes('No pod waits')`)
	b.wait(waiting(1) + `.includes('shop/db-0')`)
	b.shows(".side:nth-child(2) .told", "it still waits")
	b.do(chromedp.Evaluate(inFrame(1, `document.querySelector('#waits a').click()`), nil))
	b.wait(inFrame(1, `document.getElementById('panel-title')?.innerText.includes('shop/db-0')`))
	b.do(chromedp.Evaluate(inFrame(1, `document.querySelector('#panel .chain a').click()`), nil))
	b.wait(inFrame(1, `document.getElementById('panel-title')?.innerText.includes('pv-vol-db')`))
	b.accessible("two recordings")
	if left := eval[float64](b, inFrame(0, `document.documentElement.clientHeight - document.getElementById('map').getBoundingClientRect().bottom`)); left < 0 || left > 40 {
		t.Errorf("the map of a side ends %.0f pixels above the end of its frame", left)
	}
	b.do(chromedp.Focus("#time-at", chromedp.ByQuery), chromedp.KeyEvent(kb.Home))
	b.shows("#about", "A pod moves")
	b.do(chromedp.Click("#time-play", chromedp.ByQuery))
	b.wait(`document.getElementById('time-play').innerText === 'Play' && document.getElementById('time-at').value === document.getElementById('time-at').max`)
}
