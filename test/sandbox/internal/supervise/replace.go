// SPDX-License-Identifier: Apache-2.0

package supervise

import "fmt"

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
