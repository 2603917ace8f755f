// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"crypto/rand"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// Identity is a user of the API server, as authentication sees it.
type Identity struct {
	// User is the user name, such as system:kube-scheduler.
	User string
	// Groups are the user's groups, without system:authenticated, which the
	// API server adds itself.
	Groups []string
}

// MoorageNamespace is where Moorage's service accounts live.
const MoorageNamespace = "moorage-system"

// driverNamespace is where the CSI driver's service accounts live.
const driverNamespace = "disk-system"

// admin is the identity of the kubeconfig that `up` prints.
func admin() Identity { return Identity{User: "sandbox-admin", Groups: []string{"system:masters"}} }

// user is an identity that Kubernetes gives rights by name.
func user(name string) Identity { return Identity{User: name} }

// node is the identity of a kubelet, for the Node authorizer and the
// NodeRestriction admission plugin.
func node(name string) Identity {
	return Identity{User: "system:node:" + name, Groups: []string{"system:nodes"}}
}

// serviceAccount is the identity that a service account's token stands for.
func serviceAccount(namespace, name string) Identity {
	return Identity{
		User:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// IsMoorage says whether a user name is one of Moorage's service accounts.
func IsMoorage(user string) bool {
	return strings.HasPrefix(user, "system:serviceaccount:"+MoorageNamespace+":")
}

// tokens is the API server's static token file in the making. Static tokens
// authenticate without an API call, so that components can start before the
// service accounts they stand for have been created.
type tokens struct {
	rows [][]string
}

// issue makes a bearer token for an identity.
func (t *tokens) issue(id Identity) (string, error) {
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("make a token for %s: %w", id.User, err)
	}
	token := hex.EncodeToString(raw)
	t.rows = append(t.rows, []string{token, id.User, id.User, strings.Join(id.Groups, ",")})
	return token, nil
}

// write stores the tokens in the format of --token-auth-file.
func (t *tokens) write(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	defer f.Close()
	if err := csv.NewWriter(f).WriteAll(t.rows); err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	return nil
}
