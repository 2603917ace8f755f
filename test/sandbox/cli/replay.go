// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/internal/kubectl/web"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func newReplayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Serve a file of kubectl moorage bundle as a cluster that stands still, for kubectl",
		Long: "Serve a file of kubectl moorage bundle as a cluster that stands still, for kubectl, until Ctrl-C.\n\n" +
			"It is answered on this machine's loopback address without a password. " +
			"kubectl moorage COMMAND --bundle FILE needs no server.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return replay(cmd.Context(), args[0], func(kubeconfig string, a *archive.Archive) {
				fmt.Fprintf(screen.Visible(cmd.OutOrStdout()), "The cluster as it was at %s (kubectl moorage %s). Ask it in another terminal, for example:\n\n  export KUBECONFIG=%s\n  kubectl get pods --all-namespaces\n",
					a.Now().Format(time.RFC3339), a.About.Client, kubeconfig)
			})
		},
	}
}

func replay(ctx context.Context, file string, started func(kubeconfig string, a *archive.Archive)) error {
	a, err := archive.Open(file)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "moorage-replay-")
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is temporary
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := sandbox.WriteKubeconfig(kubeconfig, "http://"+listener.Addr().String(), nil, ""); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{
		Handler: web.LocalOnly(archive.NewServer(a)), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	started(kubeconfig, a)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
