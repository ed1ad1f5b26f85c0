package dsn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// hosts are those that pgx would try, each once.
func hosts(t *testing.T, text string) string {
	t.Helper()
	c, err := pgx.ParseConfig(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	list := []string{fmt.Sprintf("%s:%d", c.Host, c.Port)}
	for _, f := range c.Fallbacks {
		if h := fmt.Sprintf("%s:%d", f.Host, f.Port); list[len(list)-1] != h {
			list = append(list, h)
		}
	}
	return strings.Join(list, " ")
}

// lists are databases of one host and of several, as people write them.
var lists = map[string]string{
	"postgres://u:p@a:1/db":                              "a:1",
	"postgresql://u:p@a:1,b:2/db?sslmode=disable":        "a:1 b:2",
	"postgres://u:p@a,b:2/db":                            "a:5432 b:2",
	"postgres://u:p@a:1,b/db":                            "a:1 b:5432",
	"postgres://u:p@[::1]:1,[fe80::2]:2/db":              "::1:1 fe80::2:2",
	"postgres://a:1,b:2/db?user=u&password=p":            "a:1 b:2",
	"postgres://u:p%40x@a:1,b:2?dbname=db":               "a:1 b:2",
	"host=a,b port=1,2 user=u password='p x' dbname=db":  "a:1 b:2",
	"postgres://u:p@/db?host=a,b&port=1,2&sslmode=allow": "a:1 b:2",
}

// Whoever signs in as another, or on another database, does so at the same hosts.
func TestAllHostsStay(t *testing.T) {
	t.Parallel()
	for text, want := range lists {
		if got := hosts(t, text); got != want {
			t.Fatalf("%q has %s, want %s", text, got, want)
		}
		as, err := As(text, "o'ther", `p@/:?,\'%x`)
		if err != nil {
			t.Fatal(err)
		}
		c, err := pgx.ParseConfig(as)
		if err != nil || hosts(t, as) != want || c.User != "o'ther" || c.Password != `p@/:?,\'%x` || c.Database != "db" {
			t.Errorf("%q as another: %q %v", text, as, err)
		}
		on, err := On(text, "a db/?")
		if err != nil {
			t.Fatal(err)
		}
		c, err = pgx.ParseConfig(on)
		if err != nil || hosts(t, on) != want || c.User != "u" || c.Database != "a db/?" {
			t.Errorf("%q on another: %q %v", text, on, err)
		}
		if name, err := Database(text); name != "db" || err != nil {
			t.Errorf("%q names %q: %v", text, name, err)
		}
	}
}

// Of several hosts the one that takes writes is wanted, unless the text says another.
func TestWritable(t *testing.T) {
	t.Parallel()
	for text := range lists {
		got, err := Writable(text)
		if err != nil {
			t.Fatal(err)
		}
		several := strings.Contains(lists[text], " ")
		c, err := pgx.ParseConfig(got)
		if err != nil || hosts(t, got) != lists[text] || (c.ValidateConnect != nil) != several || !several && got != text {
			t.Errorf("%q became %q: %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"postgres://a,b/db?target_session_attrs=standby": "postgres://a,b/db?target_session_attrs=standby",
		"postgres://a,b/db?target_session_attrs=any":     "postgres://a,b/db?target_session_attrs=read-write",
		"postgres://a/db?sslmode=prefer":                 "postgres://a/db?sslmode=prefer",
	} {
		if got, err := Writable(text); got != want || err != nil {
			t.Errorf("%q became %q, want %q: %v", text, got, want, err)
		}
	}
}

// What is no address is refused, and not shown.
func TestErrorsShowNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"hunter2", "postgres://u:hunter2@a:x/db", "postgres://u:hunter2@a/db?sslmode=hunter2", "postgres://u:hunter2@a:1,b:2,c:3/db?port=1,2"} {
		_, err1 := Database(text)
		_, err2 := As(text, "u", "p")
		_, err3 := On(text, "db")
		_, err4 := Writable(text)
		for _, err := range []error{err1, err2, err3, err4} {
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}
