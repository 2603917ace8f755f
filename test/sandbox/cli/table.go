// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/test/sandbox"
)

type shown struct {
	path, namespaced string
	columns          []string
}

func shownAs(resource string) (shown, bool) {
	s, ok := map[string]shown{
		"pods":              {"/api/v1", "pods", []string{"Name", "Status", "Node"}},
		"volumeattachments": {"/apis/storage.k8s.io/v1/volumeattachments", "", []string{"PV", "Node", "Attached"}},
		"volumeholds":       {"/apis/moorage.dev/v1alpha1/volumeholds", "", []string{"Claim", "Node", "Holder", "State", "Waiting"}},
		"volumetickets":     {"/apis/moorage.dev/v1alpha1", "volumetickets", []string{"Type", "Node", "Granted", "Reason"}},
	}[resource]
	return s, ok
}

// printResource prints a kind as kubectl get does, or an object such as pod/web-1 as kubectl moorage
// explain does.
func printResource(ctx context.Context, w io.Writer, e *sandbox.Env, resource string) error {
	if strings.Contains(resource, "/") {
		return showExplanation(ctx, w, e, resource)
	}
	return showTable(ctx, w, e, resource)
}

func showExplanation(ctx context.Context, w io.Writer, e *sandbox.Env, object string) error {
	fmt.Fprintf(w, "$ kubectl moorage explain %s\n", object)
	var errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: w, ErrOut: &errs}
	code := kubectl.Run(ctx, streams, []string{"explain", object, "--kubeconfig", e.Cluster.Kubeconfig(), "--namespace", e.Namespace})
	if code != 0 && errs.Len() > 0 {
		return fmt.Errorf("kubectl moorage explain ends with %d: %s", code, errs.String())
	}
	return nil
}

func showTable(ctx context.Context, w io.Writer, e *sandbox.Env, resource string) error {
	s, ok := shownAs(resource)
	if !ok {
		return fmt.Errorf("no columns are chosen for %q", resource)
	}
	path := s.path
	if s.namespaced != "" {
		path += "/namespaces/" + e.Namespace + "/" + s.namespaced
	}
	table, err := getTable(ctx, e.Client, path)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "$ kubectl get %s\n", resource)
	return printTable(w, table, s.columns)
}

func getTable(ctx context.Context, client kubernetes.Interface, path string) (*metav1.Table, error) {
	raw, err := client.CoreV1().RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, fmt.Errorf("get %s as a table: %w", path, err)
	}
	return &table, nil
}

func printTable(w io.Writer, table *metav1.Table, columns []string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var at []int
	var header []string
	for _, name := range columns {
		i := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
		if i >= 0 {
			at, header = append(at, i), append(header, strings.ToUpper(name))
		}
	}
	fmt.Fprintln(t, strings.Join(header, "\t"))
	for _, row := range table.Rows {
		cells := make([]string, len(at))
		for j, i := range at {
			if i < len(row.Cells) && row.Cells[i] != nil {
				cells[j] = fmt.Sprint(row.Cells[i])
			}
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print a table: %w", err)
	}
	return nil
}
