// SPDX-License-Identifier: Apache-2.0

package serving

import "bytes"

// MaxValues bounds how many values the JSON of one object may have. A pod of 3 MiB,
// which is all that the API server takes, has fewer unless it is made to cost: a value
// of two bytes, such as {}, can take hundreds of times its length in memory.
const MaxValues = 100_000

// CheckValues refuses JSON that has more than MaxValues values; what names it in the
// error, a *RequestError. It counts commas and opening brackets, those in strings
// as well, without decoding anything.
func CheckValues(raw []byte, what string) error {
	if n := bytes.Count(raw, []byte(",")) + bytes.Count(raw, []byte("{")) + bytes.Count(raw, []byte("[")); n > MaxValues {
		return TooLarge("%s has some %d values, more than the %d that are taken", what, n, MaxValues)
	}
	return nil
}
