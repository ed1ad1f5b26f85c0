package migrations

import (
	"maps"
	"slices"
	"strings"
)

// Role is a database role without a password: it may do what one kind of process
// does, and nothing else. The users by which processes sign in are members of it.
type Role string

// The roles.
const (
	ControlPlane Role = "sluice_controlplane"
	Worker       Role = "sluice_worker"
	Runtime      Role = "sluice_runtime"
	Media        Role = "sluice_media" // the media engine's process too
	Backup       Role = "sluice_backup"
)

// Roles are all of them, in the order in which they are made.
var Roles = []Role{ControlPlane, Worker, Runtime, Media, Backup}

// Grants says what each role may do, by table: privileges as SQL writes them. It is
// the one list; Up brings the database to it, and a test has every role try the rest.
// LOCK TABLE in a mode that keeps writers out asks for UPDATE or DELETE, and so does
// SELECT … FOR UPDATE.
func Grants(r Role) map[string]string {
	if r == Backup {
		all := map[string]string{}
		for _, other := range Roles[:len(Roles)-1] {
			for table := range Grants(other) {
				all[table] = "SELECT"
			}
		}
		for _, table := range Nobodys {
			all[table] = "SELECT"
		}
		return all
	}
	return grants[r]
}

// Nobodys are the tables that no process uses: a backup alone reads them.
var Nobodys = []string{"river_migration", "river_notification"}

const (
	read    = "SELECT"
	add     = "SELECT, INSERT"
	change  = "SELECT, UPDATE"
	write   = "SELECT, INSERT, UPDATE"
	expire  = "SELECT, DELETE"
	all     = "SELECT, INSERT, UPDATE, DELETE"
	enqueue = "SELECT, INSERT, UPDATE (kind)" // a job that is there already is named anew
)

// events are what whoever emits an event needs: it, the deliveries to those who
// asked for it, and their jobs. Secrets and addresses of receivers are not in it.
var events = map[string]string{
	"account_events":        add,
	"webhook_subscriptions": "SELECT (id, account_id, events, ordered, status)",
	"webhook_deliveries":    "SELECT (id, subscription_id), INSERT",
	"river_job":             enqueue,
}

// product are the tables of the media product.
var product = map[string]string{
	"media_assets":            all,
	"media_captions":          all,
	"media_chapter_searches":  all,
	"media_chapters":          all,
	"media_chunks":            all,
	"media_files":             all,
	"media_links":             all,
	"media_live_captions":     all,
	"media_live_utterances":   all,
	"media_migration_videos":  all,
	"media_migrations":        all,
	"media_renders":           all,
	"media_renditions":        all,
	"media_reservations":      all,
	"media_secrets":           add,
	"media_sessions":          all,
	"media_streams":           all,
	"media_transcripts":       all,
	"media_transport_sources": all,
	"media_views":             all,
	"phone_calls":             all,
	"phone_lines":             all,
}

var grants = map[Role]map[string]string{
	ControlPlane: {
		"account_events":        add,
		"account_limits":        all,
		"account_external_ids":  add,
		"account_plans":         add,
		"accounts":              write,
		"acme_accounts":         add,
		"acme_challenges":       all,
		"api_keys":              write,
		"audit_log":             add,
		"billing_customers":     add,
		"certificates":          all,
		"chat_scopes":           change,
		"config_versions":       write,
		"edge_counts":           all,
		"edge_feed":             change,
		"edge_records":          write,
		"edges":                 all,
		"idempotent_answers":    write,
		"idempotent_claims":     all,
		"invoice_collections":   change,
		"invoice_lines":         read,
		"invoiced_months":       read,
		"invoices":              write,
		"issuer_keys":           all,
		"oauth_access_tokens":   write,
		"oauth_apps":            write,
		"oauth_codes":           write,
		"oauth_grants":          write,
		"oauth_refresh_tokens":  write,
		"payment_methods":       all,
		"plans":                 write,
		"processes":             all,
		"product_descriptions":  all,
		"request_log":           add,
		"request_log_0":         "TRUNCATE",
		"request_log_1":         "TRUNCATE",
		"request_log_2":         "TRUNCATE",
		"request_log_3":         "TRUNCATE",
		"request_log_4":         "TRUNCATE",
		"request_log_5":         "TRUNCATE",
		"request_log_6":         "TRUNCATE",
		"request_log_shares":    all,
		"request_log_slots":     write,
		"request_records":       "SELECT, INSERT, DELETE",
		"request_quotas":        all,
		"revoked_certificates":  all,
		"river_job":             enqueue,
		"schedule_executions":   write,
		"schedule_sealing":      read,
		"schedule_triggers":     all,
		"schedules":             all,
		"schema_migrations":     read,
		"scopes":                write,
		"sessions":              write,
		"sign_in_attempts":      all,
		"signing_keys":          write,
		"storage_days":          read,
		"token_budgets":         all,
		"token_usage":           read,
		"usage_counts":          write,
		"usage_progress":        change,
		"usage_sources":         write,
		"usage_totals":          write,
		"users":                 write,
		"webhook_attempts":      read,
		"webhook_deliveries":    write,
		"webhook_recoveries":    write,
		"webhook_subscriptions": all,
		"x402_balances":         write,
		"x402_payments":         write,
		"x402_transactions":     all,
	},
	Worker: joined(product, map[string]string{
		"account_events":        "SELECT, INSERT, DELETE",
		"account_limits":        read,
		"account_plans":         read,
		"accounts":              change,
		"api_keys":              change,
		"audit_log":             add,
		"billing_customers":     read,
		"config_versions":       read,
		"edge_feed":             change,
		"edge_records":          all,
		"idempotent_answers":    expire,
		"idempotent_claims":     expire,
		"invoice_collections":   write,
		"invoice_lines":         add,
		"invoiced_months":       add,
		"invoices":              write,
		"oauth_access_tokens":   "SELECT, UPDATE, DELETE",
		"oauth_apps":            read,
		"oauth_codes":           change,
		"oauth_grants":          "SELECT, UPDATE, DELETE",
		"oauth_refresh_tokens":  "SELECT, UPDATE, DELETE",
		"payment_methods":       read,
		"plans":                 read,
		"processes":             all,
		"request_quotas":        read,
		"river_job":             all,
		"river_leader":          all,
		"river_queue":           all,
		"schedule_executions":   all,
		"schedule_sealing":      change,
		"schedules":             change,
		"scopes":                read,
		"sessions":              "SELECT, UPDATE, DELETE",
		"sign_in_attempts":      expire,
		"signing_keys":          write,
		"storage_days":          all,
		"token_budgets":         read,
		"token_totals":          read,
		"token_usage":           read,
		"usage_counts":          all,
		"usage_progress":        change,
		"usage_sources":         expire,
		"usage_totals":          all,
		"usage_warnings":        "SELECT, INSERT, DELETE",
		"webhook_attempts":      write,
		"webhook_deliveries":    write,
		"webhook_recoveries":    change,
		"webhook_subscriptions": change,
		"x402_balances":         change,
		"x402_payments":         change,
		"x402_transactions":     all,
	}),
	Runtime: {
		"chat_scopes":        read,
		"idempotent_answers": write,
		"idempotent_claims":  all,
		"processes":          all,
		"scopes":             read,
		"token_budgets":      read,
		"token_holds":        all,
		"token_totals":       write,
		"token_usage":        write,
	},
	// It makes subscriptions of those that accounts bring along, and reads no secret of any.
	Media: joined(product, events, map[string]string{
		"audit_log":             "INSERT",
		"config_versions":       read,
		"idempotent_answers":    write,
		"idempotent_claims":     all,
		"processes":             all,
		"usage_warnings":        add,
		"webhook_subscriptions": "SELECT (id, account_id, url, events, description, status, disabled_reason, retry_schedule, max_concurrency, rate_per_second, ordered, failing_since, created_at, updated_at), INSERT",
	}),
}

func joined(lists ...map[string]string) map[string]string {
	m := map[string]string{}
	for _, l := range lists {
		maps.Copy(m, l)
	}
	return m
}

// privilege is one that a role has: of a whole table, or of a column of it.
type privilege struct{ table, name, column string }

// privileges are the grants of a role one by one, sorted.
func privileges(r Role) (list []privilege) {
	for table, text := range Grants(r) {
		for part := range split(text) {
			name, columns, some := strings.Cut(part, " (")
			if !some {
				list = append(list, privilege{table, name, ""})
				continue
			}
			for c := range strings.SplitSeq(strings.TrimSuffix(columns, ")"), ", ") {
				list = append(list, privilege{table, name, c})
			}
		}
	}
	slices.SortFunc(list, privilege.compare)
	return list
}

func (p privilege) compare(q privilege) int {
	return strings.Compare(p.table+" "+p.name+" "+p.column, q.table+" "+q.name+" "+q.column)
}

// split parts privileges at the commas between them, not at those of columns.
func split(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		depth, from := 0, 0
		for i := range len(text) {
			switch text[i] {
			case '(':
				depth++
			case ')':
				depth--
			case ',':
				if depth == 0 {
					if !yield(strings.TrimSpace(text[from:i])) {
						return
					}
					from = i + 1
				}
			}
		}
		yield(strings.TrimSpace(text[from:]))
	}
}
