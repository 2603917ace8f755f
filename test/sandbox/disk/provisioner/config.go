// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/client-go/kubernetes"
)

type Config struct {
	Driver  string
	Client  kubernetes.Interface
	Volumes csi.ControllerClient
	Workers int
	// Logger takes what no object can be told; slog.Default() if nil.
	Logger *slog.Logger
}

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
