// SPDX-License-Identifier: Apache-2.0

package judge

// use is something that is taken by one call and given back by another, such as
// an attachment, a staging or a target.
type use struct {
	// open counts the taking calls that arrived and have not returned.
	open int
	// held: it was taken, or may have been, and was not given back since.
	held bool
	// sure: the last taking call that returned succeeded, and no giving back
	// was tried since. Invariant: sure ⇒ held.
	sure bool
}

func (u *use) may() bool { return u.open > 0 || u.held }

// giveBack is the arrival of a call that gives back: from now on nobody may
// rely on it.
func (u *use) giveBack() { u.sure = false }

// gone is the success of a call that gives back.
func (u *use) gone() { u.held, u.sure = false, false }

// took is the return of a taking call.
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

// place is a volume at a node.
type place struct {
	attachment use
	// unpublishing counts the open ControllerUnpublish calls.
	unpublishing int
	// context is what the last successful ControllerPublish answered.
	context map[string]string
	// mode is the access mode of the last ControllerPublish that arrived.
	mode    string
	staging use
	targets map[string]*use // by target path
}

func (p *place) at() bool { return p.attachment.may() }

// inUse reports whether the node may have the volume staged or published.
func (p *place) inUse() bool { return p.staging.may() || p.published() != "" }

// published returns some target that may be published, or nothing.
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

// powerOff is the death of the machine: nothing is mounted any more, and calls
// that were open there will not be heard of again.
func (p *place) powerOff() {
	p.staging = use{}
	clear(p.targets)
}

// idle reports whether there is nothing to remember about the place.
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
