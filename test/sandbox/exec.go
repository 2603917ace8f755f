// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

func (e *Env) Exec(ctx context.Context, pod string, command ...string) (string, error) {
	var printed strings.Builder
	err := e.ExecInto(ctx, &printed, pod, command...)
	if err != nil {
		return "", err
	}
	return printed.String(), nil
}

func (e *Env) ExecInto(ctx context.Context, printed io.Writer, pod string, command ...string) error {
	request := e.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(e.Namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(e.Cluster.RESTConfig(), "GET", request.URL().String())
	if err != nil {
		return fmt.Errorf("exec in pod %s: %w", pod, err)
	}
	var complained strings.Builder
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: printed, Stderr: &complained})
	if err != nil {
		return fmt.Errorf("%s in pod %s: %w: %s", strings.Join(command, " "), pod, err, complained.String())
	}
	return nil
}
