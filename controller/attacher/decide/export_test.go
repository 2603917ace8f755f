// SPDX-License-Identifier: Apache-2.0

package decide

func (b *Tracker) Looked() int { return b.looked }
