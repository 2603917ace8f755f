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

// Ambiguous reports whether a ControllerPublish with this code may have taken effect: unless the code says
// that it was turned down before anything was done. CSI then allows a new publish or an unpublish; until
// then the volume may be at the node.
func Ambiguous(code string) bool {
	switch code {
	case "InvalidArgument", "NotFound", "AlreadyExists", "PermissionDenied",
		"ResourceExhausted", "FailedPrecondition", "Unimplemented", "Unauthenticated":
		return false
	}
	return true
}

// Interrupted reports whether the kubelet takes a NodeStage or NodePublish with this code to be in doubt,
// and undoes it later (k8s.io/kubernetes pkg/volume/csi/csi_client.go, isFinalError). After other errors it
// takes nothing to have happened.
func Interrupted(code string) bool {
	switch code {
	case "Canceled", "DeadlineExceeded", "Unavailable", "ResourceExhausted", "Aborted":
		return true
	}
	return false
}

// Err is nil for success.
func (a Answer) Err() error {
	code, err := ParseCode(a.Code)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return status.Error(code, a.Message)
}
