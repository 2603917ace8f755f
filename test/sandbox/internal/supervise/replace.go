// SPDX-License-Identifier: Apache-2.0

package supervise

import "fmt"

// Replace gives the child of the spec's name another program, with which it is
// started next.
func (g *Group) Replace(spec Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.children[spec.Name]
	if !ok {
		return fmt.Errorf("supervise: replace %s: %w", spec.Name, ErrUnknown)
	}
	c.spec = spec
	return nil
}
