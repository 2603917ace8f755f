// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/client-go/kubernetes"
)

// Config sets up a Provisioner.
type Config struct {
	// Driver is the CSI driver's name: the provisioner of the StorageClasses
	// that are served.
	Driver string
	// Client is the cluster.
	Client kubernetes.Interface
	// Volumes is the driver's Controller service.
	Volumes csi.ControllerClient
	// Workers is how many claims, and how many volumes, are worked on at once.
	Workers int
	// Logger takes what no object can be told; slog.Default() if nil.
	Logger *slog.Logger
}

// Validate returns an error that says which field is wrong.
func (c Config) Validate() error {
	var errs []error
	if c.Driver == "" {
		errs = append(errs, errors.New("Driver is empty"))
	}
	if c.Client == nil {
		errs = append(errs, errors.New("Client is missing"))
	}
	if c.Volumes == nil {
		errs = append(errs, errors.New("Volumes is missing"))
	}
	if c.Workers < 1 {
		errs = append(errs, fmt.Errorf("Workers is %d: at least one is needed", c.Workers))
	}
	return errors.Join(errs...)
}
