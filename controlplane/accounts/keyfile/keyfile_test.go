package keyfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/platform/limits/growth"
)

const key = "Xq7-kong_issued.this/one"

var (
	hash  = sha256.Sum256([]byte(key))
	inHex = hex.EncodeToString(hash[:])
	in64  = base64.StdEncoding.EncodeToString(hash[:])
)

// all reads a file; bad has the faults by line.
func all(t *testing.T, text, format string) (rows []Row, bad map[int]string, err error) {
	t.Helper()
	bad = map[int]string{}
	err = Read(strings.NewReader(text), format, func(r Row, err error) error {
		if err != nil {
			bad[r.Line] = err.Error()
			return nil
		}
		rows = append(rows, r)
		return nil
	})
	return rows, bad, err
}

func TestOneKeyInEveryForm(t *testing.T) {
	t.Parallel()
	end, limit := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), uint32(60)
	want := Row{Line: 2, Sum: hash, Name: "ci", Account: "acme", Scopes: []string{"a:read", "b:write"}, ExpiresAt: &end, PerMinute: &limit, ExternalID: "k1"}
	head := "name,account,scopes,expires_at,rate_limit_per_minute,external_id,enabled,"
	for name, text := range map[string]string{
		"hexadecimal":       head + "sha256\nci,acme,a:read b:write,2030-01-02T03:04:05Z,60,k1,true," + inHex,
		"base64":            head + "sha256\nci,acme,a:read;b:write,2030-01-02T03:04:05Z,60,k1,," + in64,
		"base64, for URLs":  head + "sha256\nci,acme,a:read;b:write,2030-01-02T03:04:05Z,60,k1,," + base64.RawURLEncoding.EncodeToString(hash[:]),
		"the key itself":    head + "key\nci,acme,\"a:read, b:write\",1893553445,60,k1,TRUE," + key,
		"from Windows":      "\ufeff" + strings.ToUpper(head) + "SHA256\r\nci,acme,a:read b:write,1893553445000,60,k1,1," + strings.ToUpper(inHex) + "\r\n",
		"an object a line":  "\n" + `{"sha256":"` + in64 + `","name":"ci","account":"acme","scopes":["a:read","b:write"],"expires_at":1893553445,"rate_limit_per_minute":60,"external_id":"k1","enabled":true}`,
		"an object of text": "\n" + `{"key":"` + key + `","name":"ci","account":"acme","scopes":"a:read b:write","expires_at":"2030-01-02T03:04:05Z","rate_limit_per_minute":"60","external_id":"k1"}`,
	} {
		rows, bad, err := all(t, text, "")
		if err != nil || len(bad) > 0 || len(rows) != 1 || !reflect.DeepEqual(rows[0], want) {
			t.Errorf("%s: %+v %v %v", name, rows, bad, err)
		}
	}
	rows, _, err := all(t, `{"sha256":"`+in64+`","expires_at":null,"rate_limit_per_minute":null,"enabled":false}`, NDJSON)
	if err != nil || len(rows) != 1 || !rows[0].Disabled || rows[0].ExpiresAt != nil || rows[0].PerMinute != nil {
		t.Errorf("%+v %v", rows, err)
	}
}

func TestFaultsNameTheirLineAndNotTheKey(t *testing.T) {
	t.Parallel()
	const secret = "short-secret"
	text := "key,sha256,enabled,expires_at,rate_limit_per_minute\n" +
		secret + ",,,,\n" + // 2
		",,,,\n" +
		key + "," + inHex + ",,,\n" +
		",abc,,,\n" +
		key + ",,perhaps,,\n" + // 6
		key + ",,,tomorrow,\n" +
		key + ",,,,0\n" +
		key + "," + "\n" +
		"\"" + key + "\n" + // 10
		"aaaaaaaaaaaaaaaaaaaaaaaa,,,,\n" +
		"abcdefghijklmnopqrstuvwx,,,,\n" +
		"\"with, a comma in the key\",,,,\n" +
		key + ",,,,\n"
	rows, bad, err := all(t, text, "")
	if err != nil || len(rows) != 1 || rows[0].Line != 14 || len(bad) != 12 {
		t.Fatalf("%+v %v %v", rows, bad, err)
	}
	for line, want := range map[int]string{2: "fewer than 16", 3: "missing", 4: "beside", 5: "not a SHA-256", 6: "enabled", 7: "expires_at", 8: "rate_limit", 9: "2 values",
		10: "quote", 11: "guessed", 12: "guessed", 13: "comma"} {
		if !strings.Contains(bad[line], want) || strings.Contains(bad[line], secret) || strings.Contains(bad[line], key) {
			t.Errorf("line %d: %s", line, bad[line])
		}
	}
	_, bad, err = all(t, `{"key":"`+secret+`","x":1}`+"\n"+`{"key":["`+secret+`"]}`+"\n"+`{"key":"`+secret+"\n{} {}\n[]", NDJSON)
	if err != nil || len(bad) != 5 || strings.Contains(strings.Join([]string{bad[1], bad[2], bad[3]}, ""), secret) {
		t.Errorf("%v %v", bad, err)
	}
}

func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	for text, format := range map[string]string{
		key + ",ci\n": "", "name,name\n": "", "\"name\n": "", "a,b": "xml", "sha256\n" + strings.Repeat("a", maxLine+1): "",
	} {
		if _, _, err := all(t, text, format); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	stop := errors.New("stop")
	if err := Read(strings.NewReader("sha256\na\nb\n"), "", func(Row, error) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestWhatWriteWritesReadReads(t *testing.T) {
	t.Parallel()
	end, limit := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), uint32(60)
	want := []Row{{Line: 2, Sum: hash, Name: `of "Acme", Inc.`, Account: "a b", Scopes: []string{"a:read"}, ExpiresAt: &end, PerMinute: &limit, ExternalID: "1"}, {Line: 3}}
	var b bytes.Buffer
	if err := Write(&b, append(want, Row{Name: "two\nlines"})); err != nil {
		t.Fatal(err)
	}
	rows, bad, err := all(t, b.String(), CSV)
	if err != nil || len(bad) > 0 || len(rows) != 3 || !reflect.DeepEqual(rows[0], want[0]) || rows[2].Name != "two lines" {
		t.Errorf("%+v %v %v", rows, bad, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("sha256,name\n"+inHex+",a\n"), "")
	f.Add([]byte(`{"key":"`+key+`","scopes":["a:b"]}`), NDJSON)
	f.Fuzz(func(t *testing.T, b []byte, format string) {
		none := func(Row, error) error { return nil }
		growth.Linear(t, len(b), 512, 128<<10, func() { _ = Read(bytes.NewReader(b), format, none) })
		_ = Read(bytes.NewReader(b), format, func(r Row, err error) error {
			if err != nil && len(err.Error()) > 1000 {
				t.Fatalf("a long error: %v", err)
			}
			return nil
		})
	})
}
