package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/accounts/keyfile"
	"sluice.dev/sluice/controlplane/accounts/keyimport"
	"sluice.dev/sluice/internal/app"
)

// keyImport is what `sluice key import` is told by its flags.
type keyImport struct {
	format, account, name string
	request               keyimport.Request
	scopes                []string
	check                 bool
}

// keyImportCommand is `sluice key import`.
func keyImportCommand(env app.Environment) *cobra.Command {
	var k keyImport
	c := &cobra.Command{
		Use: "import FILE|-", Short: "import API keys that another system issued, as hashes; they keep working", Args: cobra.ExactArgs(1),
		Long: "Reads CSV with a header, or JSON objects, one a line, with these columns:\n" +
			"  sha256                 SHA-256 of the key, hexadecimal or base64; or\n" +
			"  key                    the key itself, which is hashed here and never sent\n" +
			"  name                   name of the key\n" +
			"  account                account id, or the account's name in the other system\n" +
			"  scopes                 separated by spaces or commas; in JSON, an array\n" +
			"  expires_at             RFC 3339 or Unix time; empty: never\n" +
			"  rate_limit_per_minute  empty: no limit of its own\n" +
			"  external_id            id of the key in the other system\n" +
			"  enabled                false: the row is skipped\n" +
			"Rows are sent in batches. Importing a file again changes nothing, so after an interruption run the same command again.\n" +
			"Each row that is refused is printed with its line number; the exit status is then 1.",
		Example: "  sluice key import --from kong --create-accounts --scope orders:read keys.csv\n" +
			"  jq -c '…' unkey.json | sluice key import --from unkey --account acct_… -",
		RunE: func(c *cobra.Command, args []string) error {
			in, err := openFile(args[0], c.InOrStdin())
			if err != nil {
				return err
			}
			defer func() { _ = in.Close() }()
			return k.run(c.Context(), env, in, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&k.request.From, "from", "import", "name of the system that issued the keys, shown with them")
	f.StringVar(&k.format, "format", "", "csv or ndjson (default: by the first character)")
	f.StringVar(&k.account, "account", "", "account of rows without one: its id, or its name in the other system")
	f.StringVar(&k.name, "name", "", "name of rows without one (default: their external id, or the first digits of the hash)")
	f.StringSliceVar(&k.scopes, "scope", nil, "scope of rows without any; may be repeated")
	f.BoolVar(&k.request.CreateAccounts, "create-accounts", false, "create accounts that do not exist yet")
	f.StringVar(&k.request.Plan, "plan", "free", "plan of the accounts that are created")
	f.BoolVar(&k.check, "check", false, "only check the file, and send nothing")
	return c
}

// openFile opens a file, or standard input for -.
func openFile(name string, in io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(in), nil
	}
	return os.Open(name)
}

// keySender sends the rows of a file in batches.
type keySender struct {
	keyImport
	ctx   context.Context
	api   client
	out   io.Writer
	batch keyimport.Request
	lines []int // of the batch's keys
	bytes int   // of the batch, about
	total keyimport.Report
	// refused is how many rows were; skipped, how many are not enabled.
	refused, skipped int
}

// batchBytes is about how large a batch may get.
const batchBytes = 1 << 20

// run reads the file and reports what became of its rows.
func (k keyImport) run(ctx context.Context, env app.Environment, in io.Reader, out io.Writer) error {
	i := &keySender{keyImport: k, ctx: ctx, out: out, batch: k.request}
	if !k.check {
		var err error
		if i.api, err = newClient(env); err != nil {
			return err
		}
	}
	err := keyfile.Read(in, k.format, i.row)
	if err == nil {
		err = i.flush()
	}
	i.report()
	switch {
	case err != nil:
		return err
	case i.refused > 0:
		return exitStatus(1)
	}
	return nil
}

// row takes one row, and sends the batch when it is full.
func (i *keySender) row(r keyfile.Row, err error) error {
	switch {
	case err != nil:
		return i.refuse(r.Line, err.Error())
	case r.Disabled:
		i.skipped++
		return nil
	}
	key := i.key(r)
	if key.Account == "" {
		return i.refuse(r.Line, "account is missing: add the column, or give --account")
	}
	if len(key.Scopes) == 0 {
		return i.refuse(r.Line, "scopes are missing: add the column, or give --scope")
	}
	if i.check {
		i.total.Created++
		return nil
	}
	size := 256 + len(key.Name) + len(key.Account) + len(key.ExternalID)
	for _, s := range key.Scopes {
		size += len(s) + 3
	}
	if len(i.batch.Keys) == keyimport.MaxKeys || i.bytes+size > batchBytes && len(i.batch.Keys) > 0 {
		if err := i.flush(); err != nil {
			return err
		}
	}
	i.batch.Keys, i.lines, i.bytes = append(i.batch.Keys, key), append(i.lines, r.Line), i.bytes+size
	return nil
}

// key is a row as it is sent.
func (i *keySender) key(r keyfile.Row) keyimport.Key {
	sum := hex.EncodeToString(r.Sum[:])
	name, account, scopes := r.Name, r.Account, r.Scopes
	for _, other := range []string{i.name, r.ExternalID, "imported " + sum[:8]} {
		if name == "" {
			name = other
		}
	}
	if account == "" {
		account = i.account
	}
	if len(scopes) == 0 {
		scopes = i.scopes
	}
	return keyimport.Key{SHA256: sum, Name: name, Account: account, Scopes: scopes, ExpiresAt: r.ExpiresAt, PerMinute: r.PerMinute, ExternalID: r.ExternalID}
}

// refuse prints why a row was not imported.
func (i *keySender) refuse(line int, reason string) error {
	i.refused++
	_, err := fmt.Fprintf(i.out, "line %d: %s\n", line, reason)
	return err
}

// flush sends the batch.
func (i *keySender) flush() error {
	if len(i.batch.Keys) == 0 {
		return nil
	}
	answer, err := i.api.do(i.ctx, http.MethodPost, "/admin/v1/keys/import", i.batch)
	if err != nil {
		return fmt.Errorf("the rows from line %d on were not imported: %w", i.lines[0], err)
	}
	var got keyimport.Report
	if err := json.Unmarshal(answer, &got); err != nil {
		return errors.New("the admin API does not say what became of the keys")
	}
	for _, r := range got.Refused {
		if r.Index < 0 || r.Index >= len(i.lines) {
			continue
		}
		if err := i.refuse(i.lines[r.Index], r.Reason); err != nil {
			return err
		}
	}
	i.total.Created, i.total.Unchanged, i.total.AccountsCreated = i.total.Created+got.Created, i.total.Unchanged+got.Unchanged, i.total.AccountsCreated+got.AccountsCreated
	i.batch.Keys, i.lines, i.bytes = i.batch.Keys[:0], i.lines[:0], 0
	return nil
}

// report prints the sums.
func (i *keySender) report() {
	if i.check {
		_, _ = fmt.Fprintf(i.out, "%d rows can be sent, %d skipped, %d refused\n", i.total.Created, i.skipped, i.refused)
		return
	}
	_, _ = fmt.Fprintf(i.out, "%d keys created, %d unchanged, %d skipped, %d refused; %d accounts created\n",
		i.total.Created, i.total.Unchanged, i.skipped, i.refused, i.total.AccountsCreated)
}
