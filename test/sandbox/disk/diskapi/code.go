// SPDX-License-Identifier: Apache-2.0

package diskapi

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ParseCode reads a gRPC code from its Go name, such as "ResourceExhausted".
func ParseCode(name string) (codes.Code, error) {
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		if c.String() == name {
			return c, nil
		}
	}
	return codes.Unknown, fmt.Errorf("%q is no gRPC code: use a name such as Internal, Unavailable or ResourceExhausted", name)
}

// Ambiguous reports whether an answer with this code leaves open whether a
// ControllerPublish took effect. An answer is unambiguous only when its code
// says that the request was turned down before anything was done. CSI lets the
// caller of any other failed publish choose between publishing again and
// unpublishing; until then the volume may be at the node.
func Ambiguous(code string) bool {
	switch code {
	case "InvalidArgument", "NotFound", "AlreadyExists", "PermissionDenied",
		"ResourceExhausted", "FailedPrecondition", "Unimplemented", "Unauthenticated":
		return false
	}
	return true
}

// Interrupted reports whether the kubelet takes a NodeStage or NodePublish with this code to be in
// doubt, and undoes it later (k8s.io/kubernetes pkg/volume/csi/csi_client.go, isFinalError). After any
// other error it takes nothing to have happened.
func Interrupted(code string) bool {
	switch code {
	case "Canceled", "DeadlineExceeded", "Unavailable", "ResourceExhausted", "Aborted":
		return true
	}
	return false
}

// Err is the gRPC error that the answer stands for; nil for success.
func (a Answer) Err() error {
	code, err := ParseCode(a.Code)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return status.Error(code, a.Message)
}
