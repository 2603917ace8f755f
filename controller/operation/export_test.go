// SPDX-License-Identifier: Apache-2.0

package operation

import "time"

// AskOften has a Watcher ask at once again whether what was not served is.
func AskOften(w *Watcher) { w.every = time.Millisecond }
