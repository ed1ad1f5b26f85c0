package migrations_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// first is the first migration that runs while binaries of before it serve: those
// up to it made the schema.
const first = "0016"

// agreed are statements that break a rule with good reason, by file.
var agreed = map[string][]string{
	// The index holds the accounts whose new column is true, and none is; accounts are few.
	"0017_create_usage.up.sql": {"builds an index and keeps writers of accounts waiting"},
	// People are few: the indexes are there in a moment.
	"0040_let_accounts_invite_anybody.up.sql": {"builds an index and keeps writers of users waiting", "builds an index and keeps writers of users waiting"},
	// The index holds the events whose new column is set, and none is: the events of 30 days are
	// read once, a million of them in less than a second.
	"0071_order_events.up.sql": {"builds an index and keeps writers of account_events waiting"},
	// The index holds the renders whose new column is above zero, and none is: those of 30 days are
	// read once.
	"0074_count_render_images.up.sql": {"builds an index and keeps writers of media_renders waiting"},
	// Signing keys are a handful, and seldom written.
	"0028_add_signing_keys_seal_after.up.sql": {"UPDATE holds rows or tables for long"},
	// The constraint lets through more than the one that it replaces.
	"0075_suspend_accounts.up.sql": {"refuses rows that they write"},
	// The constraint lets through more than the one that it replaces.
	"0065_publish_by_moq.up.sql": {"refuses rows that they write"},
}

var (
	noise     = regexp.MustCompile(`(?m)--.*$|'(?:[^']|'')*'`)
	madeHere  = regexp.MustCompile(`(?i)\bCREATE\s+(?:UNLOGGED\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)`)
	altered   = regexp.MustCompile(`(?i)^ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?(\w+)`)
	indexed   = regexp.MustCompile(`(?i)^CREATE\s+(?:UNIQUE\s+)?INDEX\s+(CONCURRENTLY\s+)?.*?\bON\s+(?:ONLY\s+)?(\w+)`)
	addition  = regexp.MustCompile(`(?i)\bADD\s+COLUMN\b`)
	wholesale = regexp.MustCompile(`(?i)^(UPDATE|DELETE\s+FROM|TRUNCATE|LOCK)\b`)
)

// breaking are what binaries of before would stumble over, or wait for.
var breaking = []struct {
	form *regexp.Regexp
	why  string
}{
	{regexp.MustCompile(`(?i)^DROP\s+(VIEW|TYPE|FUNCTION)\b`), "drops what they use"},
	{regexp.MustCompile(`(?i)\bDROP\s+(COLUMN|TABLE)\b`), "drops what they use"},
	{regexp.MustCompile(`(?i)\bRENAME\b`), "renames what they use"},
	{regexp.MustCompile(`(?i)\bALTER\s+(COLUMN\s+)?\w+\s+(SET\s+DATA\s+)?TYPE\b`), "changes a type, and rewrites the table under a lock"},
	{regexp.MustCompile(`(?i)^ALTER\s+TYPE\b`), "changes a type"},
	{regexp.MustCompile(`(?i)\bSET\s+NOT\s+NULL\b`), "refuses rows that they write"},
	{regexp.MustCompile(`(?i)\bADD\s+CONSTRAINT\b`), "refuses rows that they write"},
	{regexp.MustCompile(`(?i)\bADD\s+(CHECK|UNIQUE|PRIMARY|FOREIGN|EXCLUDE)\b`), "refuses rows that they write"},
}

// breaks says what a migration would do to binaries of before it that go on
// running. Tables that it makes are unknown to those, and so free.
func breaks(sql string) (found []string) {
	sql = noise.ReplaceAllString(sql, "")
	var own []string
	for _, m := range madeHere.FindAllStringSubmatch(sql, -1) {
		own = append(own, m[1])
	}
	for statement := range strings.SplitSeq(sql, ";") {
		statement = strings.TrimSpace(statement)
		if m := altered.FindStringSubmatch(statement); m != nil && slices.Contains(own, m[1]) {
			continue
		}
		if m := indexed.FindStringSubmatch(statement); m != nil && m[1] == "" && !slices.Contains(own, m[2]) {
			found = append(found, "builds an index and keeps writers of "+m[2]+" waiting")
		}
		if m := wholesale.FindString(statement); m != "" {
			found = append(found, strings.ToUpper(strings.Fields(m)[0])+" holds rows or tables for long")
		}
		for _, b := range breaking {
			if b.form.MatchString(statement) {
				found = append(found, b.why)
			}
		}
		for _, column := range addition.Split(statement, -1)[1:] {
			text := strings.ToUpper(column)
			if strings.Contains(text, "NOT NULL") && !strings.Contains(text, "DEFAULT") && !strings.Contains(text, "GENERATED") {
				found = append(found, "refuses rows that lack the new column")
			}
		}
	}
	return found
}

// Migrations run before the new binaries are put in place, while those of before
// serve (docs/upgrading.md).
func TestMigrationsLetTheBinariesOfBeforeGoOn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.up.sql")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if name < first {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := breaks(string(text))
		for _, why := range found {
			if !slices.Contains(agreed[name], why) {
				t.Errorf("%s %s: spread it over two versions, or give the reason in agreed", name, why)
			}
		}
		for _, why := range agreed[name] {
			if !slices.Contains(found, why) {
				t.Errorf("%s no longer %s", name, why)
			}
		}
	}
}

func TestBreaks(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		`ALTER TABLE a DROP COLUMN b`:                                           "drops what they use",
		`DROP TABLE a`:                                                          "drops what they use",
		`ALTER TABLE a RENAME COLUMN b TO c`:                                    "renames what they use",
		`alter table a rename to b`:                                             "renames what they use",
		`ALTER TABLE a ALTER COLUMN b TYPE bigint`:                              "changes a type, and rewrites the table under a lock",
		"ALTER TABLE a\n  ALTER b SET DATA TYPE text":                           "changes a type, and rewrites the table under a lock",
		`ALTER TYPE t ADD VALUE 'x'`:                                            "changes a type",
		`ALTER TABLE a ALTER b SET NOT NULL`:                                    "refuses rows that they write",
		`ALTER TABLE a ADD CONSTRAINT c CHECK (b > 0)`:                          "refuses rows that they write",
		`ALTER TABLE a ADD COLUMN b text NOT NULL`:                              "refuses rows that lack the new column",
		`ALTER TABLE a ADD COLUMN b text DEFAULT '', ADD COLUMN c int NOT NULL`: "refuses rows that lack the new column",
		`CREATE UNIQUE INDEX i ON a (b)`:                                        "builds an index and keeps writers of a waiting",
		`UPDATE a SET b = 1`:                                                    "UPDATE holds rows or tables for long",
		`LOCK TABLE a`:                                                          "LOCK holds rows or tables for long",
		`ALTER TABLE a ADD COLUMN b text`:                                       "",
		`ALTER TABLE a ADD COLUMN b int NOT NULL DEFAULT 0 CONSTRAINT c CHECK (b >= 0)`:                          "",
		`CREATE INDEX CONCURRENTLY i ON a (b)`:                                                                   "",
		`CREATE TABLE a (b text NOT NULL); CREATE INDEX i ON a (b); ALTER TABLE a ADD CONSTRAINT c CHECK (true)`: "",
		"-- DROP TABLE a\nINSERT INTO a VALUES ('; DROP TABLE b; it''s RENAME')":                                 "",
	} {
		if got := strings.Join(breaks(sql), ", "); got != want {
			t.Errorf("%s\n%q, want %q", sql, got, want)
		}
	}
}
