// SPDX-License-Identifier: Apache-2.0

package serving

import "bytes"

// MaxValues bounds the values in an object's JSON. A pod of 3 MiB, the API server's limit, has fewer
// unless it is made to cost: a value of two bytes, such as {}, can take hundreds of times its length in
// memory.
const MaxValues = 100_000

// CheckValues refuses JSON with more than MaxValues values; what names it in the error, a
// *RequestError. It counts commas and opening brackets, also in strings, without decoding anything.
func CheckValues(raw []byte, what string) error {
	if n := bytes.Count(raw, []byte(",")) + bytes.Count(raw, []byte("{")) + bytes.Count(raw, []byte("[")); n > MaxValues {
		return TooLarge("%s has some %d values, more than the %d that are taken", what, n, MaxValues)
	}
	return nil
}
