package main

// gateways check a key out of a table and count it in a window of a minute where
// they can, tell the upstream the account in place of the key, and set the four
// rate headers. The limit is one that the bench never reaches. None of them shares
// its counts with others, as edges do, or meters.
var gateways = []gateway{
	{
		name: "nginx + Lua: key of a table, fixed window, headers", from: debian,
		files: map[string]string{"nginx.conf": nginxConf},
		args:  []string{"ROOT/usr/sbin/nginx", "-e", "stderr", "-p", "DIR", "-c", "DIR/nginx.conf"},
		env:   []string{libraries},
	},
	{
		name: "HAProxy: key of a table, sliding window, headers", from: debian,
		files: map[string]string{"haproxy.cfg": haproxyConf},
		args:  []string{"ROOT/usr/sbin/haproxy", "-db", "-q", "-f", "DIR/haproxy.cfg"},
		env:   []string{libraries},
	},
	{
		name: "Caddy: one key, no limit (its module could not be had)", from: module{"github.com/caddyserver/caddy/v2", "v2.11.9", "cmd/caddy"},
		files: map[string]string{"Caddyfile": caddyConf},
		args:  []string{"ROOT/caddy", "run", "--config", "DIR/Caddyfile", "--adapter", "caddyfile"},
		env:   []string{"XDG_DATA_HOME=DIR", "XDG_CONFIG_HOME=DIR"},
	},
	{
		name: "Traefik: one key in a rule, token bucket, headers that do not count", from: module{"github.com/traefik/traefik/v3", "v3.5.3", "cmd/traefik"},
		files: map[string]string{"static.yaml": traefikStatic, "dynamic.yaml": traefikDynamic},
		args:  []string{"ROOT/traefik", "--configfile=DIR/static.yaml"},
	},
}

const libraries = "LD_LIBRARY_PATH=ROOT/usr/lib/x86_64-linux-gnu:ROOT/lib/x86_64-linux-gnu:ROOT/usr/lib/aarch64-linux-gnu:ROOT/lib/aarch64-linux-gnu"

const nginxConf = `load_module ROOT/usr/lib/nginx/modules/ndk_http_module.so;
load_module ROOT/usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off;
master_process off;
pid DIR/nginx.pid;
error_log stderr error;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  lua_package_path "ROOT/usr/share/lua/5.1/?.lua;;";
  lua_shared_dict keys 4m;
  lua_shared_dict windows 16m;
  keepalive_requests 1000000000;
  upstream product { server UPSTREAM; keepalive 64; keepalive_requests 1000000000; }
  init_by_lua_block {
    for line in io.lines("DIR/keys") do
      local key, account = line:match("(%S+) (%S+)")
      ngx.shared.keys:set("Bearer " .. key, account)
    end
  }
  server {
    listen ADDR;
    location / {
      access_by_lua_block {
        local header = ngx.var.http_authorization
        local account = header and ngx.shared.keys:get(header)
        if not account then return ngx.exit(401) end
        local now = ngx.time()
        local used = ngx.shared.windows:incr(account .. ":" .. now - now % 60, 1, 0, 120)
        if used > 1000000000 then return ngx.exit(429) end
        ngx.ctx.used, ngx.ctx.reset = used, now - now % 60 + 60
        ngx.req.set_header("X-Account", account)
        ngx.req.clear_header("Authorization")
      }
      header_filter_by_lua_block {
        local h = ngx.header
        h["X-RateLimit-Limit"] = 1000000000
        h["X-RateLimit-Remaining"] = 1000000000 - ngx.ctx.used
        h["X-RateLimit-Reset"] = ngx.ctx.reset
        h["X-RateLimit-Window"] = 60
      }
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_pass http://product;
    }
  }
}
`

const haproxyConf = `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 1s
frontend gateway
  bind ADDR
  http-request set-var(txn.account) req.hdr(authorization),word(2,' '),map_str(DIR/keys)
  http-request deny deny_status 401 unless { var(txn.account) -m found }
  http-request track-sc0 var(txn.account) table windows
  http-request set-var(txn.used) sc0_http_req_rate(windows)
  http-request deny deny_status 429 if { var(txn.used) -m int gt 1000000000 }
  http-request set-header X-Account %[var(txn.account)]
  http-request del-header Authorization
  http-response set-header X-RateLimit-Limit 1000000000
  http-response set-header X-RateLimit-Remaining %[int(1000000000),sub(txn.used)]
  http-response set-header X-RateLimit-Reset %[date(60)]
  http-response set-header X-RateLimit-Window 60
  default_backend product
backend windows
  stick-table type string len 32 size 100k expire 2m store http_req_rate(60s)
backend product
  http-reuse always
  server product UPSTREAM
`

const caddyConf = `{
  admin off
  auto_https off
  log {
    level ERROR
  }
}
http://ADDR {
  @known header Authorization "Bearer KEY"
  handle @known {
    header X-RateLimit-Window 60
    reverse_proxy UPSTREAM {
      header_up X-Account account-0
      header_up -Authorization
    }
  }
  respond 401
}
`

const traefikStatic = `global: {checkNewVersion: false, sendAnonymousUsage: false}
log: {level: ERROR}
entryPoints: {web: {address: "ADDR"}}
providers: {file: {filename: DIR/dynamic.yaml}}
`

const traefikDynamic = `http:
  routers:
    gateway: {rule: "Header(` + "`Authorization`, `Bearer KEY`" + `)", entryPoints: [web], middlewares: [limit, identity], service: product}
  middlewares:
    limit: {rateLimit: {average: 1000000000, period: 1m, burst: 1000000000, sourceCriterion: {requestHeaderName: Authorization}}}
    identity:
      headers:
        customRequestHeaders: {Authorization: "", X-Account: account-0}
        customResponseHeaders: {X-RateLimit-Limit: "1000000000", X-RateLimit-Window: "60"}
  services:
    product: {loadBalancer: {servers: [{url: "http://UPSTREAM"}]}}
`
