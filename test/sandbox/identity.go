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

type Identity struct {
	User   string
	Groups []string
}

const MoorageNamespace = "moorage-system"

const driverNamespace = "disk-system"

func admin() Identity { return Identity{User: "sandbox-admin", Groups: []string{"system:masters"}} }

func user(name string) Identity { return Identity{User: name} }

func node(name string) Identity {
	return Identity{User: "system:node:" + name, Groups: []string{"system:nodes"}}
}

func serviceAccount(namespace, name string) Identity {
	return Identity{
		User:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

func IsMoorage(user string) bool {
	return strings.HasPrefix(user, "system:serviceaccount:"+MoorageNamespace+":")
}

// With static tokens, components can start before their service accounts exist.
type tokens struct {
	rows [][]string
}

func (t *tokens) issue(id Identity) (string, error) {
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("make a token for %s: %w", id.User, err)
	}
	token := hex.EncodeToString(raw)
	t.rows = append(t.rows, []string{token, id.User, id.User, strings.Join(id.Groups, ",")})
	return token, nil
}

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
