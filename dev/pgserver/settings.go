package pgserver

import "strconv"

// replicated are further arguments of a primary with a standby, and of the standby,
// which may be the primary next: commits are durable by there being two, and a standby
// that has lost its primary tries to find it again soon.
var replicated = []string{"-c", "synchronous_commit=on", "-c", "wal_retrieve_retry_interval=500ms", "-c", "wal_keep_size=256MB"}

// settings returns the server's arguments. They stand on the command line, so
// that a change reaches data folders made by an earlier version too.
func settings(port int, ephemeral bool) []string {
	values := []string{
		"port=" + strconv.Itoa(port),
		"listen_addresses=127.0.0.1",
		"unix_socket_directories=", // loopback TCP only: no path that could be too long or shared
		"max_connections=400",
		"shared_buffers=256MB",
		"max_wal_size=2GB",
		"checkpoint_completion_target=0.9",
		"random_page_cost=1.1",
		"log_destination=stderr",
		"logging_collector=off",
		"log_checkpoints=off",
		"log_line_prefix=",
		"lc_messages=C", // this package reads the log
	}
	if ephemeral {
		values = append(values, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	args := make([]string, 0, 2*len(values))
	for _, v := range values {
		args = append(args, "-c", v)
	}
	return args
}
