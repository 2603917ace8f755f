// SPDX-License-Identifier: Apache-2.0

package serving

import "bytes"

// MaxValues bounds the values in an object's JSON. A pod of 3 MiB, the API server's limit, has fewer unless
// it is an attack: a value such as {} can take hundreds of times its length in memory.
const MaxValues = 100_000

// CheckValues refuses JSON with more than MaxValues values. It counts commas and opening brackets, also in
// strings. Its *RequestError names what.
func CheckValues(raw []byte, what string) error {
	if n := bytes.Count(raw, []byte(",")) + bytes.Count(raw, []byte("{")) + bytes.Count(raw, []byte("[")); n > MaxValues {
		return TooLarge("%s has some %d values, more than the %d that are taken", what, n, MaxValues)
	}
	return nil
}
