// SPDX-License-Identifier: Apache-2.0

package judge

// use is taken by a call and given back by another: an attachment, a staging or a target.
type use struct {
	open int
	// held: it was taken, or may have been, and was not given back since.
	held bool
	// sure: the last taking call succeeded, and nothing tried to give it back. Invariant: sure ⇒ held.
	sure bool
}

func (u *use) may() bool { return u.open > 0 || u.held }

// giveBack is the arrival of the call: from now on nobody may rely on the use.
func (u *use) giveBack() { u.sure = false }

func (u *use) gone() { u.held, u.sure = false, false }

func (u *use) took(ok, inDoubt bool) {
	if u.open > 0 {
		u.open--
	}
	switch {
	case ok:
		u.held, u.sure = true, true
	case inDoubt:
		u.held = true
	}
}

type place struct {
	attachment   use
	unpublishing int
	context      map[string]string
	mode         string
	staging      use
	targets      map[string]*use // by target path
}

func (p *place) at() bool { return p.attachment.may() }

func (p *place) inUse() bool { return p.staging.may() || p.published() != "" }

func (p *place) published() string {
	first := ""
	for path, t := range p.targets {
		if t.may() && (first == "" || path < first) {
			first = path
		}
	}
	return first
}

func (p *place) target(path string) *use {
	t, ok := p.targets[path]
	if !ok {
		t = &use{}
		p.targets[path] = t
	}
	return t
}

// The machine died: nothing is mounted, and its open calls will not be heard of again.
func (p *place) powerOff() {
	p.staging = use{}
	clear(p.targets)
}

func (p *place) idle() bool {
	return !p.at() && !p.inUse() && p.unpublishing == 0
}

func (p *place) leftovers() []string {
	var left []string
	if p.at() {
		left = append(left, "attached")
	}
	if p.staging.may() {
		left = append(left, "staged")
	}
	if p.published() != "" {
		left = append(left, "published")
	}
	return left
}
