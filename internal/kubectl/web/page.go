// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

//go:embed assets
var assets embed.FS

// The files of the page. Each module comes after those that it imports.
const (
	indexPage = "index.html"
	style     = "style.css"
	mainName  = "main.js"
)

func modules() []string {
	return []string{"dom.js", "model.js", "map.js", "lists.js", "panel.js", mainName}
}

// asset is a file of the page; nil where there is no such file.
func asset(name string) []byte {
	raw, err := assets.ReadFile("assets/" + name)
	if err != nil {
		return nil
	}
	return raw
}

// Static is what a page in one file shows.
type Static struct {
	Source string     `json:"source"`
	Taken  time.Time  `json:"taken"`
	View   *view.View `json:"view,omitempty"`
	// Details are by reference; those of other objects were left out.
	Details map[string]Detail `json:"details,omitempty"`
}

// The lines of the page that name its files.
const (
	styleLine  = `<link rel="stylesheet" href="style.css">`
	scriptLine = `<script type="module" src="main.js"></script>`
	headLine   = `<meta charset="utf-8">`
)

// WriteStatic writes the page as one file that loads nothing. What it shows is data in it:
// encoding/json writes <, > and & as escapes, so that no name ends the element that it is in.
func WriteStatic(w io.Writer, s Static) error {
	data, err := facts.JSON(s)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	page, err := single(string(asset(indexPage)), bundled(modules()...), data)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, page)
	return err
}

// single makes one file of a page: with its script, its style and its data in place of the lines that
// name them. It may run its own script.
func single(page, script string, data []byte) (string, error) {
	css := string(asset(style))
	for _, text := range []string{script, css} {
		if lower := strings.ToLower(text); strings.Contains(lower, "</script") || strings.Contains(lower, "</style") || strings.Contains(lower, "<!--") {
			return "", errors.New("write the page: its own code would end the element that it is in")
		}
	}
	for _, part := range [][2]string{
		{headLine, headLine + `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ` + hashOf(script) + `; style-src ` + hashOf(css) +
			`; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'">`},
		{styleLine, "<style>" + css + "</style>"},
		{scriptLine, `<script type="application/json" id="data">` + string(data) + `</script><script type="module">` + script + "</script>"},
	} {
		var err error
		if page, err = replaceOnce(page, part[0], part[1]); err != nil {
			return "", err
		}
	}
	return page, nil
}

// replaceOnce replaces a line of the page.
func replaceOnce(page, line, with string) (string, error) {
	before, after, found := strings.Cut(page, line)
	if !found {
		return "", fmt.Errorf("write the page: it has no line %q", line)
	}
	return before + with + after, nil
}

// bundled is modules in one: without their imports, which are all of each other.
func bundled(names ...string) string {
	var out strings.Builder
	for _, name := range names {
		for line := range strings.Lines(string(asset(name))) {
			if !strings.HasPrefix(line, "import ") {
				out.WriteString(strings.TrimPrefix(line, "export "))
			}
		}
	}
	return out.String()
}

// hashOf is the source by which a content security policy lets a text run.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
