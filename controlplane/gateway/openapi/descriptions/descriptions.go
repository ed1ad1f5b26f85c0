// Package descriptions keeps what operators have said the operations of products
// are: one OpenAPI document for each product, which the platform's own description,
// its documentation and its tools for agents take up where a route leads to the
// operation.
package descriptions

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Bounds of what is kept.
const (
	MaxBytes = 4 << 20  // of one description, as JSON
	MaxTotal = 16 << 20 // of all
)

// Store keeps descriptions.
type Store struct{ DB postgres.DB }

// Summary is a description without its document.
type Summary struct {
	Product    string `json:"product"`
	Operations int    `json:"operations"`
	Bytes      int    `json:"bytes"`
	Changed    bool   `json:"changed"` // by the request; one that says what is there already changes nothing
}

// Put replaces the description of a product by what text, an OpenAPI document in
// JSON, says of operations that d has a route of the product for. It fails with
// not_found when d has no such product, and with invalid_request when text is no such
// document, describes none of the product's operations, or is too large.
//
// It takes time and memory linear in text and in what its references stand for, which
// document.Read bounds.
func (s Store) Put(ctx context.Context, d config.Document, product string, text []byte) (sum Summary, err error) {
	if !slices.ContainsFunc(d.Products, func(p config.Product) bool { return p.Name == product }) {
		return sum, apierror.Errorf(decision.NotFound, "There is no product of that name in the configuration.")
	}
	pruned, n, err := prune(text, d, product)
	if err != nil {
		return sum, err
	}
	sum = Summary{Product: product, Operations: n, Bytes: len(pruned)}
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		// One change at a time: the sum of all sizes must hold.
		if _, err := tx.Exec(ctx, `LOCK TABLE product_descriptions IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return fmt.Errorf("lock descriptions: %w", err)
		}
		var others int
		var same bool
		if err := tx.QueryRow(ctx, `SELECT coalesce(sum(octet_length(document)) FILTER (WHERE product <> $1), 0),
			coalesce(bool_or(document = $2) FILTER (WHERE product = $1), false) FROM product_descriptions`, product, pruned).Scan(&others, &same); err != nil {
			return fmt.Errorf("look at descriptions: %w", err)
		}
		if others+len(pruned) > MaxTotal {
			return apierror.Errorf(decision.TooLarge, "All descriptions together would have more than %d bytes: take one away, or shorten this one.", MaxTotal)
		}
		if sum.Changed = !same; same {
			return nil
		}
		return put(ctx, tx, sum, pruned)
	})
	return sum, err
}

// put stores a description with its entry in the audit log.
func put(ctx context.Context, tx pgx.Tx, sum Summary, text []byte) error {
	author := "admin"
	if c, ok := identity.From(ctx); ok && c.Key != "" {
		author = c.Key
	}
	_, err := tx.Exec(ctx, `DELETE FROM product_descriptions WHERE product = $1`, sum.Product)
	if err == nil { // a new row, so that it has a new revision
		_, err = tx.Exec(ctx, `INSERT INTO product_descriptions (product, document, operations, author) VALUES ($1, $2, $3, $4)`,
			sum.Product, text, sum.Operations, author)
	}
	if err != nil {
		return fmt.Errorf("store the description of %s: %w", sum.Product, err)
	}
	return audit.RecordTx(ctx, tx, audit.Change{Action: "description.put", Target: sum.Product,
		After: map[string]int{"operations": sum.Operations, "bytes": sum.Bytes}})
}

// prune returns what text says of operations of a product, as OpenAPI 3.1.
func prune(text []byte, d config.Document, product string) (pruned []byte, operations int, err error) {
	doc, err := document.Read(text, nil)
	if err != nil {
		return nil, 0, apierror.Invalid([]decision.Detail{{Field: "body", Issue: decision.Cut(err.Error(), 300), Expected: "an OpenAPI document"}})
	}
	routes := config.NewMatcher(d, config.Gateway)
	kept := slices.DeleteFunc(doc.Operations, func(op document.Operation) bool {
		r, ok := routes.Find(op.Method, op.Path)
		return !ok || r.Product != product
	})
	if len(kept) == 0 {
		return nil, 0, apierror.Invalid([]decision.Detail{{
			Field: "paths", Issue: "describe no operation that a route of the product leads to", Expected: "paths as they are on the gateway; apply the configuration first",
		}})
	}
	pruned, err = json.Marshal(doc.OpenAPI("", kept))
	if err == nil && len(pruned) > MaxBytes {
		err = apierror.Errorf(decision.TooLarge, "The description has more than %d bytes.", MaxBytes)
	}
	return pruned, len(kept), err
}

// Get returns the description of a product as JSON. It fails with not_found when
// there is none.
func (s Store) Get(ctx context.Context, product string) (text []byte, err error) {
	err = s.DB.QueryRow(ctx, `SELECT document FROM product_descriptions WHERE product = $1`, product).Scan(&text)
	if err != nil {
		return nil, postgres.NotFound(err, "read a description")
	}
	return text, nil
}

// Delete takes the description of a product away. It fails with not_found when there
// is none.
func (s Store) Delete(ctx context.Context, product string) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM product_descriptions WHERE product = $1`, product)
		if err != nil {
			return fmt.Errorf("delete a description: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return &apierror.Error{Code: decision.NotFound}
		}
		return audit.RecordTx(ctx, tx, audit.Change{Action: "description.delete", Target: product})
	})
}

// revisions are the revisions of all descriptions, by product.
func (s Store) revisions(ctx context.Context) (map[string]int64, error) {
	rows, _ := s.DB.Query(ctx, `SELECT product, revision FROM product_descriptions`)
	all := map[string]int64{}
	var product string
	var revision int64
	if _, err := pgx.ForEachRow(rows, []any{&product, &revision}, func() error { all[product] = revision; return nil }); err != nil {
		return nil, fmt.Errorf("look for descriptions: %w", err)
	}
	return all, nil
}

// sortedNames are the products of all, in order.
func sortedNames[V any](all map[string]V) []string { return slices.Sorted(maps.Keys(all)) }
