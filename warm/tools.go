//go:build tools
package warm
import (
	_ "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"
)
