// SPDX-License-Identifier: Apache-2.0

package decide

// Looked is how many records, and volumes by their names, were looked at so far.
func (b *Tracker) Looked() int { return b.looked }
