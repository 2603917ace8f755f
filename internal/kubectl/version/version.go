// SPDX-License-Identifier: Apache-2.0

// Package version is kubectl moorage version: the releases of this program and of Moorage in the cluster.
//
// Reads: the API server's version and kinds, and Moorage's pods. Decides: nothing. Writes:
// nothing.
package version

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/internal/report"
)

// Versions is the output.
type Versions struct {
	Client     string   `json:"client"`
	Kubernetes string   `json:"kubernetes,omitempty"`
	Images     []string `json:"images,omitempty"` // of Moorage's pods, sorted
	// Installed says that the cluster serves Moorage's kinds.
	Installed bool `json:"installed"`
	// Error says why the cluster was not asked, or did not answer.
	Error string `json:"error,omitempty"`
}

const patience = 5 * time.Second

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	output := screen.NewOutput(false)
	var client bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the versions of this program, the cluster and its Moorage",
		Example: "  # This program only\n  kubectl moorage version --client\n\n  # For a script\n  kubectl moorage version -o jsonpath={.client}",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.Validate(); err != nil {
				return err
			}
			v := Versions{Client: report.Version}
			var broken error
			if !client {
				broken = v.ask(cmd.Context(), b)
			}
			if output.Structured() {
				return errors.Join(output.Print(b.Streams.Out, b.Style(), "Versions", v), broken)
			}
			return errors.Join(v.print(b), broken)
		},
	}
	output.AddFlags(cmd)
	cmd.Flags().BoolVar(&client, "client", false, "Don't ask the cluster")
	return cmd
}

// ask asks the cluster, if one answers. The error is the kubeconfig's.
func (v *Versions) ask(ctx context.Context, b *command.Base) error {
	c, err := b.Connect()
	if errors.Is(err, command.ErrNoCluster) {
		v.Error = err.Error()
		return nil
	} else if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var server apiversion.Info
	raw, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(raw, &server)
	}
	if err != nil {
		v.Error = err.Error()
		return nil
	}
	v.Kubernetes = server.GitVersion
	_, err = c.Kube.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	v.Installed = err == nil
	if v.Images, err = images(ctx, c); err != nil {
		v.Error = "Moorage's pods can't be listed: " + err.Error()
	}
	return nil
}

func images(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	list, err := c.Kube.CoreV1().Pods(c.Home(ctx)).List(ctx, metav1.ListOptions{LabelSelector: cluster.OfMoorage})
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, pod := range list.Items {
		for _, container := range pod.Spec.Containers {
			found[container.Image] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func (v *Versions) moorage() string {
	switch {
	case len(v.Images) > 0:
		return strings.Join(v.Images, "\n                 ")
	case v.Installed:
		return "its CRDs are installed; no pod of it could be seen"
	}
	return "not installed in this cluster: the commands work without it"
}

func (v *Versions) print(b *command.Base) error {
	lines := []string{"kubectl moorage  " + v.Client}
	if v.Kubernetes != "" {
		lines = append(lines, "Kubernetes       "+v.Kubernetes, "Moorage          "+v.moorage())
	}
	if v.Error != "" {
		const label = "not known        "
		lines = append(lines, label+b.Style().Wrap(v.Error, len(label)))
	}
	_, err := fmt.Fprintln(b.Streams.Out, strings.Join(lines, "\n"))
	return err
}
