// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"time"
)

// longestTTL is the longest time that the API server takes for a ticket: the maximum of spec.ttlSeconds.
const longestTTL = 2592000 * time.Second

// CheckTTL says whether a ticket may have the time of the flag --ttl, which is written in whole seconds.
func CheckTTL(ttl time.Duration) error {
	switch {
	case ttl < time.Second:
		return fmt.Errorf("--ttl %s: must be a second or more", ttl)
	case ttl > longestTTL:
		return fmt.Errorf("--ttl %s: a ticket may last %.0fh at most; kubectl moorage ticket renew begins its time anew", ttl, longestTTL.Hours())
	}
	return nil
}
