// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

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
	View   *view.View `json:"view"`
	// Details are by reference; those of other objects were left out.
	Details map[string]Detail `json:"details"`
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
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	script, css := bundled(), string(asset(style))
	for _, text := range []string{script, css} {
		if lower := strings.ToLower(text); strings.Contains(lower, "</script") || strings.Contains(lower, "</style") || strings.Contains(lower, "<!--") {
			return errors.New("write the page: its own code would end the element that it is in")
		}
	}
	page := string(asset(indexPage))
	for _, part := range [][2]string{
		{headLine, headLine + `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ` + hashOf(script) + `; style-src ` + hashOf(css) +
			`; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'">`},
		{styleLine, "<style>" + css + "</style>"},
		{scriptLine, `<script type="application/json" id="data">` + string(data) + `</script><script type="module">` + script + "</script>"},
	} {
		before, after, found := strings.Cut(page, part[0])
		if !found {
			return fmt.Errorf("write the page: it has no line %q", part[0])
		}
		page = before + part[1] + after
	}
	_, err = io.Copy(w, bytes.NewReader([]byte(page)))
	return err
}

// bundled is all modules in one: without their imports, which are all of each other.
func bundled() string {
	var out strings.Builder
	for _, name := range modules() {
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
