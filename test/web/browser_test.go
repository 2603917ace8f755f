// SPDX-License-Identifier: Apache-2.0

package web

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const patience = 90 * time.Second

// The script beside this file finds the browser. There is no test without a browser.
var chromium = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("./browser").Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
})

var command string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "moorage-web")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder) //nolint:errcheck // the system clears it
	command = filepath.Join(folder, "kubectl-moorage")
	build := exec.Command("go", "build", "-C", "../..", "-o", folder, "./cmd/kubectl-moorage")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
		return 1
	}
	return m.Run()
}

func serve(t testing.TB, args ...string) string {
	t.Helper()
	url, _ := start(t, args...)
	return url
}

func start(t testing.TB, args ...string) (url string, end func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, append([]string{"web", "--kubeconfig", os.DevNull, "--open=false"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "http://127.0.0.1:") {
		t.Fatalf("the command printed %q, and %q", lines.Text(), stderr.String())
	}
	return lines.Text(), func() {
		t.Helper()
		if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
			t.Fatalf("the command ended with %v: %s", err, stderr.String())
		}
	}
}

// An error in the page's log fails the test at its end.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	errors []string
	dialog string
}

func open(t testing.TB, url string, width, height int, scheme string) *tab {
	t.Helper()
	path, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(width, height), chromedp.Flag("headless", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	ctx, end = context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(end)
	b := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.listen)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, text := range b.errors {
			t.Errorf("the browser's console: %s", text)
		}
		if b.dialog != "" {
			t.Errorf("a script of a name has run: %s", b.dialog)
		}
	})
	b.do(log.Enable(), emulate(width, height, scheme), chromedp.Navigate(url))
	b.wait(`window.moorage?.model.ready`)
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			var text []string
			for _, a := range e.Args {
				text = append(text, string(a.Value)+a.Description)
			}
			b.errors = append(b.errors, strings.Join(text, " "))
		}
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.errors = append(b.errors, fmt.Sprintf("%s %s", e.Entry.Text, e.Entry.URL))
		}
	case *page.EventJavascriptDialogOpening:
		b.dialog = e.Message
		go func() { _ = chromedp.Run(b.ctx, page.HandleJavaScriptDialog(true)) }()
	}
}

// forgive takes out errors that the test has made itself.
func (b *tab) forgive(pattern string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var left []string
	for _, text := range b.errors {
		if !regexp.MustCompile(pattern).MatchString(text) {
			left = append(left, text)
		}
	}
	b.errors = left
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	var value T
	b.do(chromedp.Evaluate(expression, &value, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return value
}

func (b *tab) wait(expression string) {
	b.t.Helper()
	var ok bool
	err := chromedp.Run(b.ctx, chromedp.Poll(`!!(`+expression+`)`, &ok, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience)))
	if err != nil {
		var shown string
		_ = chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText.slice(0, 3000)`, &shown))
		b.t.Fatalf("it never came to %s: %v; the page shows\n%s", expression, err, shown)
	}
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	quoted, _ := json.Marshal(selector)
	return eval[string](b, `document.querySelector(`+string(quoted)+`)?.innerText ?? ''`)
}

func (b *tab) shows(selector, text string) {
	b.t.Helper()
	s, _ := json.Marshal(selector)
	want, _ := json.Marshal(text)
	b.wait(fmt.Sprintf(`document.querySelector(%s)?.innerText.includes(%s)`, s, want))
}

const (
	axeURL  = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz"
	axeHash = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

var axeSource = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	file := filepath.Join(cache, "moorage-test-web", filepath.Base(axeURL))
	raw, err := os.ReadFile(file)
	for try := 0; err != nil && try < 3; try++ {
		raw, err = download(axeURL)
	}
	if err != nil {
		return "", err
	}
	if sum := sha512.Sum512(raw); base64.StdEncoding.EncodeToString(sum[:]) != axeHash {
		return "", fmt.Errorf("%s is not what it was: its hash differs", axeURL)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, raw, 0o600)); err != nil {
		return "", err
	}
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	for files := tar.NewReader(zip); ; {
		header, err := files.Next()
		if err != nil {
			return "", fmt.Errorf("axe.min.js: %w", err)
		}
		if header.Name == "package/axe.min.js" {
			text, err := io.ReadAll(files)
			return string(text), err
		}
	}
})

func download(url string) ([]byte, error) {
	answer, err := (&http.Client{Timeout: time.Minute}).Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

func (b *tab) accessible(what string) {
	b.t.Helper()
	source, err := axeSource()
	if err != nil {
		b.t.Fatalf("axe-core can't be had: %v", err)
	}
	type finding struct {
		ID, Impact, Help string
		Nodes            []string
	}
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, exception, err := runtime.Evaluate(source + "; true").Do(ctx)
		if exception != nil {
			return exception
		}
		return err
	}))
	found := eval[[]finding](b, `axe.run(document, {resultTypes: ['violations'], iframes: false}).then(r => r.violations.map(v => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.map(n => n.html.slice(0, 200) + ' ' + n.failureSummary)})))`)
	for _, f := range found {
		if f.Impact == "serious" || f.Impact == "critical" {
			b.t.Errorf("%s: %s (%s): %s: %s", what, f.ID, f.Impact, f.Help, strings.Join(f.Nodes, "; "))
		} else {
			b.t.Logf("%s: %s (%s): %s", what, f.ID, f.Impact, f.Help)
		}
	}
}
