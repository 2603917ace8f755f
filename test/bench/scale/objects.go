// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/test/bench/scale/hollow"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/client"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// The namespaces of the load. A volume has its claim's name, in either.
const (
	workloadNamespace  = "workloads"
	bystanderNamespace = "bystanders"
	bystanderPrefix    = "bystander-"
)

// isBystander says whether a volume, claim or pod is a bystander's, by its name.
func isBystander(name string) bool { return strings.HasPrefix(name, bystanderPrefix) }

// abreast is how many objects the load makes at a time.
const abreast = 40

// each calls do for 0 to n-1, so many at a time, and returns the first error.
func each(ctx context.Context, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var done sync.WaitGroup
	for range min(abreast, n) {
		done.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	done.Wait()
	return context.Cause(ctx)
}

// maker makes the load's objects. It is safe for parallel use.
type maker struct {
	kube kubernetes.Interface
	disk client.Client
	// enforced: namespaces are Moorage's.
	enforced bool

	mu      sync.Mutex
	volumes map[string]hollow.Volume // by claim
	holds   map[string]bool          // names of the bystanders' VolumeHolds; nil: not computed
}

func (m *maker) resolve(_, claim string) (hollow.Volume, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.volumes[claim]
	return v, ok
}

// namespace makes a namespace, with its service account, which kube-controller-manager may have
// made in between.
func (m *maker) namespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if m.enforced {
		ns.Labels = map[string]string{sandbox.EnforceLabel: "true"}
	}
	if _, err := m.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := m.kube.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("service account of %s: %w", name, err)
	}
	return nil
}

// volume makes a disk, and a PersistentVolume and a claim that are bound to each other.
func (m *maker) volume(ctx context.Context, namespace, name string) error {
	disk, err := m.disk.Do(ctx, diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: name}})
	if err == nil && disk.Volume == "" {
		err = errors.New(disk.Message)
	}
	if err != nil {
		return fmt.Errorf("disk %s: %w", name, err)
	}
	m.mu.Lock()
	m.volumes[name] = hollow.Volume{
		Handle: disk.Volume, Name: corev1.UniqueVolumeName("kubernetes.io/csi/" + sandbox.DriverName + "^" + disk.Volume),
	}
	m.mu.Unlock()
	return m.bind(ctx, namespace, name, disk.Volume)
}

// bind makes a claim and a PersistentVolume, and binds them in place of kube-controller-manager,
// which binds singly. If that was first, it is as good.
func (m *maker) bind(ctx context.Context, namespace, name, handle string) error {
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claims, volumes := m.kube.CoreV1().PersistentVolumeClaims(namespace), m.kube.CoreV1().PersistentVolumes()
	// The claim is bound only once the PersistentVolume exists: before, it would be lost.
	claim, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeName: name, StorageClassName: new(""), Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("claim %s: %w", name, err)
	}
	pv, err := volumes.Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: modes, Capacity: size, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: sandbox.DriverName, VolumeHandle: handle}},
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name, UID: claim.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("PersistentVolume %s: %w", name, err)
	}
	pv.Status.Phase = corev1.VolumeBound
	if _, err := volumes.UpdateStatus(ctx, pv, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("PersistentVolume %s: %w", name, err)
	}
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	if claim, err = claims.Update(ctx, claim, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("claim %s: %w", name, err)
	}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: modes, Capacity: size}
	if _, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("claim %s: %w", name, err)
	}
	return nil
}

// pod makes a pod with claims, at the named node if any.
func (m *maker) pod(ctx context.Context, namespace, name, node string, labels map[string]string, claims []string) error {
	pod := sandbox.Pod(name, claims...)
	pod.Labels, pod.Spec.NodeName = labels, node
	if _, err := m.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("pod %s: %w", name, err)
	}
	return nil
}

// workloads makes pods anew when their predecessors are gone.
type workloads struct {
	maker  *maker
	perPod int
	queue  chan string

	mu          sync.Mutex
	generations map[string]int
	errs        []error
}

func workloadName(i int) string { return fmt.Sprintf("w-%05d", i) }

func claimsOf(workload string, n int) []string {
	claims := make([]string, n)
	for i := range claims {
		claims[i] = fmt.Sprintf("%s-%d", workload, i)
	}
	return claims
}

func (w *workloads) create(ctx context.Context, workload, node string) error {
	w.mu.Lock()
	w.generations[workload]++
	name := fmt.Sprintf("%s-g%d", workload, w.generations[workload])
	w.mu.Unlock()
	return w.maker.pod(ctx, workloadNamespace, name, node, map[string]string{workloadLabel: workload}, claimsOf(workload, w.perPod))
}

func (w *workloads) run(ctx context.Context) {
	for range abreast {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case workload := <-w.queue:
					if err := w.create(ctx, workload, ""); err != nil && ctx.Err() == nil {
						w.mu.Lock()
						w.errs = append(w.errs, err)
						w.mu.Unlock()
					}
				}
			}
		}()
	}
}

// failure is the reason why a pod was not made anew.
func (w *workloads) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.errs...)
}
