// SPDX-License-Identifier: Apache-2.0

package decide

// Looked is how many records Next has looked at so far.
func (b *Book) Looked() int { return b.looked }
