// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// packUID packs a UID in Kubernetes' form; empty: zeros. False: another form.
func packUID(s string) ([16]byte, bool) {
	var u [16]byte
	if s == "" {
		return u, true
	}
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, false
	}
	for i, at := range [16]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34} {
		high, low := hexDigit(s[at]), hexDigit(s[at+1])
		if high|low > 15 {
			return [16]byte{}, false
		}
		u[i] = high<<4 | low
	}
	return u, u != [16]byte{}
}

// hexDigit is 255 for anything but a lower-case hexadecimal digit.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

func unpackUID(u [16]byte) string {
	if u == [16]byte{} {
		return ""
	}
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// packVersion packs a resource version; empty: 0. False: not a usual number.
func packVersion(s string) (uint64, bool) {
	if s == "" {
		return 0, true
	}
	if !isNumber(s) {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 10, 64)
	return v, err == nil
}

const attachmentPrefix = "csi-"

// AttachmentName is the VolumeAttachment's name: "csi-" and the SHA-256 of handle, driver and node name
// (pkg/volume/csi/csi_attacher.go, getAttachmentName).
func AttachmentName(v VolumeID, n NodeName) string {
	var name [len(attachmentPrefix) + 2*sha256.Size]byte
	copy(name[:], attachmentPrefix)
	sum := attachmentDigest(v, n)
	hex.Encode(name[len(attachmentPrefix):], sum[:])
	return string(name[:])
}

func attachmentDigest(v VolumeID, n NodeName) [sha256.Size]byte {
	var short [256]byte
	b := append(short[:0], v.Handle...)
	b = append(b, v.Driver...)
	return sha256.Sum256(append(b, n...))
}
