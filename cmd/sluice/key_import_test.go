package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/accounts/keyimport"
)

const plainKey = "Xq7-kong_issued.this/one"

// write makes a file of a test.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestKeyImportSendsHashesOnly(t *testing.T) {
	t.Parallel()
	api := newAdminAPI(t, http.StatusOK, `{"created":1,"unchanged":1,"accounts_created":1,"refused":[{"index":0,"reason":"the key belongs to another account"}]}`)
	file := write(t, "key,name,account,enabled\n"+plainKey+",ci,acme,\nshort,x,y,\n"+plainKey+"2,,,\n"+plainKey+"3,off,acme,false\n"+plainKey+"4,ci,acme,\n")
	out, err := runUse(t, api.environment(), "key", "import", "--from", "kong", "--account", "A", "--scope", "a:b", "--create-accounts", file)
	if err == nil || len(api.asked) != 1 {
		t.Fatalf("%v %q", err, api.asked)
	}
	if strings.Contains(api.asked[0]+out, plainKey) || !strings.HasPrefix(api.asked[0], `POST /admin/v1/keys/import {"from":"kong","create_accounts":true,"plan":"free","keys":[{"sha256":"`) {
		t.Errorf("%s", api.asked[0])
	}
	var sent keyimport.Request
	if err := json.Unmarshal([]byte(strings.TrimPrefix(api.asked[0], "POST /admin/v1/keys/import ")), &sent); err != nil {
		t.Fatal(err)
	}
	if len(sent.Keys) != 3 || sent.Keys[1].Account != "A" || !strings.HasPrefix(sent.Keys[1].Name, "imported ") || fmt.Sprint(sent.Keys[0].Scopes) != "[a:b]" {
		t.Errorf("%+v", sent)
	}
	want := "line 3: key has fewer than 16 bytes: it can be guessed\nline 2: the key belongs to another account\n" +
		"1 keys created, 1 unchanged, 1 skipped, 2 refused; 1 accounts created\n"
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

func TestKeyImportSendsBatches(t *testing.T) {
	t.Parallel()
	api := newAdminAPI(t, http.StatusOK, `{"created":1,"unchanged":0,"accounts_created":0,"refused":[]}`)
	var b strings.Builder
	b.WriteString("sha256,name\n")
	for i := range 2*keyimport.MaxKeys + 1 {
		fmt.Fprintf(&b, "%064x,k\n", i)
	}
	out, err := runUse(t, api.environment(), "key", "import", "--account", "A", "--scope", "a:b", write(t, b.String()))
	if err != nil || len(api.asked) != 3 || !strings.HasPrefix(out, "3 keys created") {
		t.Errorf("%v, %d requests, %s", err, len(api.asked), out)
	}
}

func TestKeyImportStopsWhereTheAPIRefuses(t *testing.T) {
	t.Parallel()
	api := newAdminAPI(t, http.StatusBadRequest, `{"error":{"code":"invalid_request","message":"No.","details":[]}}`)
	file := write(t, strings.Repeat(fmt.Sprintf(`{"sha256":"%064x","account":"A","scopes":["a:b"]}`+"\n", 1), 2))
	_, err := runUse(t, api.environment(), "key", "import", file)
	if err == nil || !strings.Contains(err.Error(), "from line 1 on") {
		t.Error(err)
	}
	if out, err := runUse(t, api.environment(), "key", "import", "--check", file); err != nil || !strings.HasPrefix(out, "2 rows can be sent") || len(api.asked) != 1 {
		t.Errorf("%v %s", err, out)
	}
	if _, err := runUse(t, api.environment(), "key", "import", file+".not"); err == nil {
		t.Error("a file that is not there")
	}
	if out, err := runUse(t, api.environment(), "key", "import", write(t, `{"sha256":"`+strings.Repeat("0", 64)+`"}`)); err == nil || !strings.Contains(out, "--account") {
		t.Errorf("%v %s", err, out)
	}
}
