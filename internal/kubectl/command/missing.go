// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// NotFoundError is the error for an object that is not there.
type NotFoundError struct{ Message string }

// Error returns the message.
func (e *NotFoundError) Error() string { return e.Message }

// Missing is the error for an object that was not among those that were listed. It
// tells one that is not there, a NotFoundError, from one that may not be read, and
// names one of those known that is called nearly the same. namespace is empty for
// what has none.
func Missing(unseen []facts.Unseen, resource, namespace, name string) error {
	for _, u := range unseen {
		if u.Resource == resource && (u.Namespace == "" || u.Namespace != namespace) {
			return fmt.Errorf("%s %q can't be read: the right to list %s is missing (kubectl auth can-i list %s%s): %s", resource, name, resource, resource, inside(namespace), u.Message)
		}
	}
	message := fmt.Sprintf("%s %q not found", resource, name)
	if namespace != "" {
		message = fmt.Sprintf("%s %q not found in namespace %q", resource, name, namespace)
	}
	return &NotFoundError{message}
}

// UnreadTicket is the error for a ticket that may not be read, whether it exists or not; nil where the
// tickets of its namespace are seen, or are not served at all.
func UnreadTicket(w *facts.World, namespace, name string) error {
	unserved := func(u facts.Unseen) bool { return u.Missing }
	err := Missing(slices.DeleteFunc(slices.Clone(w.Unseen), unserved), v1alpha1.Resource(v1alpha1.ResourceVolumeTickets).String(), namespace, name)
	if missing := (*NotFoundError)(nil); errors.As(err, &missing) {
		return nil
	}
	return err
}

// Elsewhere adds to the error for an object that is not in its namespace in which other
// namespaces there is one of that name.
func Elsewhere[T metav1.Object](err error, list []T, name string) error {
	missing := (*NotFoundError)(nil)
	if !errors.As(err, &missing) {
		return err
	}
	var namespaces []string
	for _, o := range list {
		if o.GetName() == name {
			namespaces = append(namespaces, o.GetNamespace())
		}
	}
	switch len(namespaces) {
	case 0:
		return err
	case 1:
		return &NotFoundError{fmt.Sprintf("%s. There is one in namespace %s: -n %s", missing.Message, namespaces[0], namespaces[0])}
	}
	slices.Sort(namespaces)
	return &NotFoundError{fmt.Sprintf("%s. Of that name there are some in other namespaces, such as %s: -n %s", missing.Message, namespaces[0], namespaces[0])}
}

// NoNamespace says that a namespace does not exist, and names one that is called nearly the
// same; empty where it exists, or that can't be told.
func NoNamespace(ctx context.Context, c *cluster.Cluster, namespace string) string {
	if namespace == "" {
		return ""
	}
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", namespace).String()}
	list, err := c.Kube.CoreV1().Namespaces().List(ctx, named)
	if err != nil || slices.ContainsFunc(list.Items, func(n corev1.Namespace) bool { return n.Name == namespace }) {
		return ""
	}
	return fmt.Sprintf("namespace %q not found", namespace)
}

// Ended is a sentence with its full stop, if it does not end with a question.
func Ended(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// InNamespace is an error of a command that looked in the cluster's namespace, or, where it has
// not found an object and there is no such namespace, that.
func InNamespace(ctx context.Context, c *cluster.Cluster, err error) error {
	missing := (*NotFoundError)(nil)
	if !errors.As(err, &missing) || !strings.Contains(missing.Message, fmt.Sprintf("in namespace %q", c.Namespace)) {
		return err
	}
	if none := NoNamespace(ctx, c, c.Namespace); none != "" {
		return &NotFoundError{none}
	}
	return err
}

// inside is how kubectl is asked of a namespace; empty for what has none.
func inside(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// One is for a command that takes one name: the error for none, or for several, says
// what to type.
func One(what, usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("name a %s: %s", what, usage)
		case 1:
			return nil
		}
		return fmt.Errorf("name one %s, not %d: %s", what, len(args), usage)
	}
}
