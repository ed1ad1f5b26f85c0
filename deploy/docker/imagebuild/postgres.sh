# Makes a database cluster if there is none, and becomes the server. Takes the
# variables of the official image: POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB.
set -eu
data=/var/lib/postgresql/data
if [ ! -s "$data/PG_VERSION" ]; then
	umask 077
	printf '%s' "$POSTGRES_PASSWORD" >/tmp/password
	initdb -D "$data" -U "$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-instructions >/dev/null
	rm /tmp/password
	printf 'host all all all scram-sha-256\n' >>"$data/pg_hba.conf"
	printf 'CREATE DATABASE "%s";\n' "$POSTGRES_DB" | postgres --single -D "$data" postgres >/dev/null
fi
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/run/postgresql -c max_connections=300
