#!/bin/sh
# Installs bootfarm-edge, the site agent of Bootfarm, from the control plane at @CONTROL_URL@.
#
#   { echo token=TOKEN; curl -fsSL @CONTROL_URL@/install/edge.sh; } | sudo sh
#
# The dashboard's "Add edge" makes the line with its token. Options follow `sudo sh -s --`; --help lists them.
# Nothing that was downloaded is run before its signature was found right (docs/decisions/0010-edge-installation.md).
set -eu

control_url='@CONTROL_URL@'
release_key='@RELEASE_KEY@'

user=bootfarm-edge
program=/usr/local/bin/bootfarm-edge
data=/var/lib/bootfarm-edge
configuration=/etc/bootfarm-edge
unit=/etc/systemd/system/bootfarm-edge.service
space_wanted_kib=131072

token=${token:-}
token_file=''
insecure=''
ca_file=''
proxy=''
listens=''
serve_options=''
action=install
keep_data=''
with_systemd=yes
with_packages=yes
end_devices=''
scratch=''
undo=''

usage() {
	cat <<END
Installs the edge of Bootfarm from $control_url, or brings it up to date.

  --token-file FILE     has the join token; or put token=TOKEN before this script. --token TOKEN works as well, and
                        shows the token to everybody on this machine for a moment
  --listen IP           address of this machine that devices reach; repeated for each network that it is in. Default:
                        the only one, or the one of the default route
  --serve-options TEXT  further options of bootfarm-edge serve, such as '--dhcp off'
  --end-devices         restarts a running edge even where devices lose their writes with it, and restart
  --insecure-uplink     accepts a control plane at http://: anybody on the path reads the join token and what the edge
                        and the control plane exchange, and can change this script
  --ca-file FILE        certificates of the authorities to trust, in PEM, instead of the system's
  --proxy URL           http://[USER:PASSWORD@]HOST:PORT; default: HTTPS_PROXY and NO_PROXY of the environment
  --no-packages         installs no package; otherwise busybox-static is, if this machine has no static busybox, which
                        imports of images need that nobody has prepared
  --no-systemd          for containers: installs no service; $configuration/run starts the edge
  --uninstall           takes everything away again; with --keep-data not its identity, reports and disks
  --help                this text
END
}

say() {
	printf '%s\n' "$*"
}

fail() {
	printf 'bootfarm-edge: %s\n' "$*" >&2
	exit 1
}

# The newest step is taken back first.
on_failure() {
	undo="$1;$undo"
}

finish() {
	code=$?
	trap - EXIT
	if [ "$code" -ne 0 ] && [ -n "$undo" ]; then
		eval "$undo" || true
		printf 'bootfarm-edge: nothing was installed; what had been done was taken back.\n' >&2
	fi
	[ -z "$scratch" ] || rm -rf "$scratch"
	exit "$code"
}

read_arguments() {
	while [ $# -gt 0 ]; do
		case $1 in
		--token | --token-file | --listen | --serve-options | --ca-file | --proxy)
			[ $# -ge 2 ] || fail "$1 needs a value; see --help."
			case $1 in
			--token) token=$2 ;;
			--token-file) token_file=$2 ;;
			--listen) listens="$listens --listen $2" ;;
			--serve-options) serve_options=" $2" ;;
			--ca-file) ca_file=$2 ;;
			--proxy) proxy=$2 ;;
			esac
			shift
			;;
		--insecure-uplink) insecure=yes ;;
		--no-systemd) with_systemd='' ;;
		--no-packages) with_packages='' ;;
		--end-devices) end_devices=yes ;;
		--uninstall) action=uninstall ;;
		--keep-data) keep_data=yes ;;
		--help | -h)
			usage
			exit 0
			;;
		*) fail "There is no option $1; see --help." ;;
		esac
		shift
	done
	case "$listens$serve_options" in
	*[!A-Za-z0-9\ .,:/=_-]*) fail 'Options of the edge are letters, digits and . , : / = _ - only.' ;;
	esac
	if [ -n "$token_file" ]; then
		[ -r "$token_file" ] || fail "--token-file $token_file cannot be read."
		token=$(cat "$token_file")
	fi
	case $token in
	*[!A-Za-z0-9_-]*) fail 'This is not a join token.' ;;
	esac
}

# How the control plane is reached: as said now, else as the installed edge does it, else as the environment says.
# The proxy goes by the environment, since it may have a password and everybody here can see command lines.
choose_uplink() {
	new_uplink=$ca_file$proxy
	if [ -z "$proxy" ] && [ -r "$configuration/proxy" ]; then
		# shellcheck disable=SC1091
		. "$configuration/proxy"
	fi
	if [ -n "$proxy" ]; then
		HTTPS_PROXY=$proxy
		HTTP_PROXY=$proxy
	fi
	HTTPS_PROXY=${HTTPS_PROXY:-${https_proxy:-}}
	HTTP_PROXY=${HTTP_PROXY:-${http_proxy:-}}
	NO_PROXY=${NO_PROXY:-${no_proxy:-}}
	https_proxy=$HTTPS_PROXY
	http_proxy=$HTTP_PROXY
	no_proxy=$NO_PROXY
	export HTTPS_PROXY HTTP_PROXY NO_PROXY https_proxy http_proxy no_proxy
	case $HTTPS_PROXY$HTTP_PROXY$NO_PROXY in
	*[!A-Za-z0-9.,:/%@~*_-]*) fail 'The proxy has characters that cannot be kept here; write them as %XX.' ;;
	esac
	if [ -n "$ca_file" ]; then
		[ -r "$ca_file" ] || fail "--ca-file $ca_file cannot be read."
	elif [ -r "$configuration/ca.pem" ]; then
		ca_file=$configuration/ca.pem
	fi
	case " $(cat "$configuration/options" 2>/dev/null || true) " in
	*--insecure-uplink*) insecure=yes ;;
	esac
	case $control_url in
	https://* | http://localhost | http://localhost[:/]* | http://127.*) insecure='' ;;
	*)
		[ -n "$insecure" ] ||
			fail "$control_url is not encrypted: anybody on the path reads the join token and can change what is installed. Use https://, or accept the risk with --insecure-uplink."
		;;
	esac
}

has() {
	command -v "$1" >/dev/null 2>&1
}

check_root() {
	[ "$(uname -s)" = Linux ] || fail 'An edge runs on Linux only.'
	[ "$(id -u)" -eq 0 ] || fail 'Run this as root, with sudo: it makes a user, a service and files of the system.'
}

check_systemd() {
	[ -n "$with_systemd" ] || return 0
	[ -d /run/systemd/system ] || fail 'systemd does not run here; in a container, say --no-systemd.'
}

check_machine() {
	case $(uname -m) in
	x86_64 | amd64) arch=x86_64 ;;
	aarch64 | arm64) arch=aarch64 ;;
	*) fail "There are edges for x86_64 and aarch64 only, and this machine is $(uname -m)." ;;
	esac
	if [ "$arch" = x86_64 ] && [ -r /proc/cpuinfo ]; then
		for flag in avx2 bmi2 aes; do
			grep -qw "$flag" /proc/cpuinfo ||
				fail "This processor is too old for an edge: it lacks $flag (Intel since 2013, AMD since 2015 have it)."
		done
	fi
	for folder in /usr/local /var/lib; do
		free_kib=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
		[ "$free_kib" -ge "$space_wanted_kib" ] ||
			fail "$folder has $((free_kib / 1024)) MiB free; an edge needs $((space_wanted_kib / 1024)) MiB and room for its disks."
	done
}

check_tools() {
	has curl || has wget || fail 'curl or wget is needed. Install one, and run this again.'
	for tool in sha256sum mktemp awk sed; do
		has "$tool" || fail "$tool is needed. Install it, and run this again."
	done
	has openssl ||
		fail 'openssl is needed to check the signature of what is installed. Install it (apt-get install openssl), and run this again.'
	case $(openssl version) in
	OpenSSL\ [3-9].* | OpenSSL\ [1-9][0-9].*) ;;
	*) fail "OpenSSL 3 or newer is needed to check the signature of what is installed; here is $(openssl version)." ;;
	esac
}

# fetch PATH FILE
fetch() {
	if has curl; then
		# Redirects are not followed.
		status=$(curl -sS ${ca_file:+--cacert "$ca_file"} --connect-timeout 15 --max-time 600 -o "$2" -w '%{http_code}' "$control_url$1") ||
			fail "The control plane at $control_url does not answer; see above. A private certificate authority is named with --ca-file, a proxy with --proxy."
		[ "$status" = 200 ] || refuse "$status" "$2"
	else
		# BusyBox follows redirects, whatever is said; what it fetches is signed.
		redirects=''
		if wget --help 2>&1 | grep -q -- --max-redirect; then redirects=--max-redirect=0; fi
		wget -q $redirects ${ca_file:+--ca-certificate="$ca_file"} -T 60 -O "$2" "$control_url$1" ||
			fail "$control_url$1 cannot be had; open it in a browser to see why."
	fi
}

refuse() {
	detail=$(sed -n 's/.*"detail":"\([^"]*\)".*/\1/p' "$2" | tr -cd '[:print:]' | cut -c 1-400)
	fail "The control plane at $control_url answered $1. ${detail:-It may be starting; try again in a minute.}"
}

download() {
	scratch=$(mktemp -d /tmp/bootfarm-edge.XXXXXX)
	say "Fetching the edge for $arch from $control_url"
	fetch "/install/edge/$arch/release" "$scratch/release"
	fetch "/install/edge/$arch/release.sig" "$scratch/release.sig"
	fetch "/install/edge/$arch" "$scratch/bootfarm-edge"
	check_signature
}

check_signature() {
	{
		echo '-----BEGIN PUBLIC KEY-----'
		# An Ed25519 key's head (RFC 8410) is twelve bytes, and so sixteen letters for every key.
		echo "MCowBQYDK2VwAyEA$release_key"
		echo '-----END PUBLIC KEY-----'
	} >"$scratch/key.pem"
	openssl base64 -d -A -in "$scratch/release.sig" -out "$scratch/signature" 2>/dev/null || true
	openssl pkeyutl -verify -pubin -inkey "$scratch/key.pem" -rawin -in "$scratch/release" \
		-sigfile "$scratch/signature" >/dev/null 2>&1 ||
		fail 'The signature of the release is wrong: it was changed on the way or is of another control plane. It was not run.'
	[ "$(sed -n 1p "$scratch/release")" = bootfarm-edge-release-v1 ] || fail 'What was signed is no release of the edge.'
	version=$(sed -n 2p "$scratch/release")
	[ "$(sed -n 3p "$scratch/release")" = "$arch" ] || fail "The release is not for $arch."
	sha256=$(sha256sum "$scratch/bootfarm-edge" | cut -d ' ' -f 1)
	[ "$(sed -n 4p "$scratch/release")" = "$sha256" ] ||
		fail 'The program is not the one that was signed: it was changed on the way or cut off. It was not run.'
	say "Its signature is right: bootfarm-edge $version"
}

# An edge that is here goes on with the key that it was installed by, and never to an older release.
check_upgrade() {
	pinned=$(cat "$configuration/release.key" 2>/dev/null || true)
	[ "$pinned" = "$release_key" ] ||
		fail "This edge was installed by another release key than the one of $control_url. If that is meant, run this with --uninstall --keep-data first."
	"$program" verify-release --key "$pinned" --release "$scratch/release" \
		--signature "$scratch/release.sig" --program "$scratch/bootfarm-edge" >/dev/null || exit 1
}

place_program() {
	is_new=yes
	if [ -x "$program" ]; then
		if [ "$(sha256sum "$program" | cut -d ' ' -f 1)" = "$sha256" ]; then
			is_new=''
			return 0
		fi
		check_upgrade
		cp -p "$program" "$scratch/earlier"
		on_failure "cp -p '$scratch/earlier' '$program.new' && mv '$program.new' '$program'"
	else
		on_failure "rm -f '$program'"
	fi
	mkdir -p "${program%/*}"
	cp "$scratch/bootfarm-edge" "$program.new"
	chmod 755 "$program.new"
	mv "$program.new" "$program"
	"$program" version >/dev/null 2>&1 || fail 'The program does not run on this machine.'
}

make_user() {
	id "$user" >/dev/null 2>&1 && return 0
	if has useradd; then
		useradd --system --user-group --home-dir "$data" --no-create-home --shell /usr/sbin/nologin \
			--comment 'Bootfarm edge' "$user"
	else
		addgroup -S "$user"
		adduser -S -D -H -h "$data" -s /sbin/nologin -G "$user" "$user"
	fi
	on_failure remove_user
}

remove_user() {
	id "$user" >/dev/null 2>&1 || return 0
	if has userdel; then userdel "$user"; else deluser "$user"; fi >/dev/null 2>&1 || true
	if has groupdel; then groupdel "$user"; else delgroup "$user"; fi >/dev/null 2>&1 || true
}

make_folders() {
	if [ ! -d "$data" ]; then
		on_failure "rm -rf '$data'"
		mkdir -p "$data"
	fi
	mkdir -p "$data/boot-files" "$data/store"
	chown -R "$user:$user" "$data"
	chmod 700 "$data"
	if [ ! -d "$configuration" ]; then
		on_failure "rm -rf '$configuration'"
		mkdir -p "$configuration"
	fi
	keep_uplink
}

# Images are imported into it, and vDisks are served from it. Plain images may lie beside it.
# shellcheck disable=SC2086
make_store() {
	store=$data/store
	previous=''
	for word in $options; do
		[ "$previous" != --store ] || store=$word
		case $word in --store=*) store=${word#--store=} ;; esac
		previous=$word
	done
	[ ! -e "$store/bootfarm-store" ] || return 0
	organization=$(sed -n 's/.*"organizationId":"\([0-9a-f-]*\)".*/\1/p' "$data/identity.json")
	said=$(as_edge "$program" vdisk init --beside-files --store "$store" \
		${organization:+--organization $organization} 2>&1) && return 0
	# Devices can boot what others bring: the self-check repeats what is missing.
	say "There is no store for images yet: $said"
}

# Images that nobody has prepared for the network get an initramfs, which needs a static busybox. Where this script may
# not or cannot bring it, the self-check names it.
bring_busybox() {
	# shellcheck disable=SC2086
	[ -n "$with_packages" ] && "$program" doctor $options --data "$data" --only imports | grep -q busybox-static || return 0
	if has apt-get; then
		set -- apt-get -yq --no-install-recommends install busybox-static
	elif has dnf; then
		set -- dnf -yq install busybox
	elif has apk; then
		set -- apk add -q busybox-static
	else
		return 0
	fi
	say "Installing what imports of images need: $*"
	said=$(DEBIAN_FRONTEND=noninteractive "$@" 2>&1) || say "It cannot be installed: $(printf '%s' "$said" | tail -n 1)"
}

# The edge reads its own copy of the authorities: it cannot look into the home directories of people.
keep_uplink() {
	uplink_options=${insecure:+ --insecure-uplink}
	if [ -n "$ca_file" ]; then
		[ "$ca_file" = "$configuration/ca.pem" ] || cp "$ca_file" "$configuration/ca.pem"
		chmod 644 "$configuration/ca.pem"
		uplink_options="$uplink_options --ca-file $configuration/ca.pem"
	fi
	if [ -n "$HTTPS_PROXY$HTTP_PROXY" ]; then
		(
			umask 077
			printf '%s\n' "HTTPS_PROXY=$HTTPS_PROXY" "HTTP_PROXY=$HTTP_PROXY" "NO_PROXY=$NO_PROXY" >"$configuration/proxy"
		)
	fi
}

# as_edge PROGRAM ARGUMENT...; no argument has a space in it
as_edge() {
	if setpriv --reuid "$user" --regid "$user" --clear-groups true >/dev/null 2>&1; then
		setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
	else
		su -s /bin/sh "$user" -c "$*"
	fi
}

# The token goes by a file that this user alone can read, and is gone afterwards.
# shellcheck disable=SC2086
join() {
	if [ -z "$token" ]; then
		[ -f "$data/identity.json" ] ||
			fail 'A join token is needed: the dashboard'\''s "Add edge" makes the line to run, with one.'
		said=$(as_edge "$program" enrol --rejoin --url "$control_url" --data "$data" $uplink_options 2>&1) || fail "$said"
	else
		(
			umask 077
			printf '%s\n' "$token" >"$data/join-token"
		)
		chown "$user:$user" "$data/join-token"
		said=$(as_edge "$program" enrol --rejoin --url "$control_url" --token-file "$data/join-token" \
			--data "$data" $uplink_options 2>&1) || {
			rm -f "$data/join-token"
			fail "$said"
		}
		rm -f "$data/join-token"
	fi
	say "$said"
}

configure() {
	if [ -z "$listens" ] && [ -f "$configuration/options" ]; then
		# shellcheck disable=SC1091
		. "$configuration/options"
		options=$(without_uplink $BOOTFARM_EDGE_OPTIONS)$uplink_options
		[ -z "$serve_options" ] || fail 'Say --listen again, beside --serve-options: both together replace what was said before.'
		return 0
	fi
	[ -n "$listens" ] || listens=" --listen $("$program" listen-address)"
	options="${listens# }$serve_options$uplink_options"
}

# The options of before, without those that this run decides.
without_uplink() {
	kept=''
	while [ $# -gt 0 ]; do
		case $1 in
		--insecure-uplink) ;;
		--ca-file) shift ;;
		*) kept="$kept $1" ;;
		esac
		shift
	done
	printf '%s' "${kept# }"
}

write_configuration() {
	if [ -f "$configuration/options" ]; then
		cp -p "$configuration/options" "$scratch/options"
		on_failure "cp -p '$scratch/options' '$configuration/options'"
	fi
	cat >"$configuration/options" <<END
# Options of bootfarm-edge serve; restart the edge after a change (systemctl restart bootfarm-edge).
BOOTFARM_EDGE_OPTIONS="$options"
END
	printf '%s\n' "$release_key" >"$configuration/release.key"
	chmod 644 "$configuration/options" "$configuration/release.key"
}

# Whoever has a port is named before anything of this machine's network changes.
check_ports() {
	[ -z "$is_running" ] || return 0
	# shellcheck disable=SC2086
	found=$("$program" doctor $options --boot-files "$data/boot-files" --only ports 2>&1) && return 0
	printf '%s\n' "$found" >&2
	fail 'The edge could not start here; see above what to do, and run this again.'
}

# Whose writes end with the running edge is named before it is restarted.
check_devices() {
	[ -n "$is_running" ] && [ -z "$end_devices" ] || return 0
	# shellcheck disable=SC2086
	found=$("$program" doctor $options --data "$data" --only restart 2>&1) && return 0
	printf '%s\n' "$found" >&2
	fail 'The edge was not restarted. Switch off the devices above and run this again, or add --end-devices to go ahead.'
}

self_check() {
	say ''
	say 'The self-check says:'
	# shellcheck disable=SC2086
	"$program" doctor $options --data "$data" --boot-files "$data/boot-files" && return 0
	say ''
	say 'The edge is installed and has joined; machines boot once what is said above is done.'
	trouble=yes
}

import_boot_programs() {
	[ -z "$(ls -A "$data/boot-files")" ] || return 0
	as_edge "$program" boot-files import --from system --boot-files "$data/boot-files" >/dev/null 2>&1 || true
	[ -z "$(ls -A "$data/boot-files")" ] || return 0
	say 'There are no boot programs yet. Install them, and give them to the edge:'
	say "  apt-get install ipxe && $program boot-files import --boot-files $data/boot-files && chown -R $user: $data/boot-files"
	say "  $restart_words"
}

write_unit() {
	[ -f "$unit" ] || on_failure "rm -f '$unit'; systemctl daemon-reload"
	cat >"$unit" <<'END'
[Unit]
Description=Bootfarm edge: boots the machines of this site over the network
Wants=network-online.target
After=network-online.target
# It is always started again: machines wait for it.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
EnvironmentFile=/etc/bootfarm-edge/options
EnvironmentFile=-/etc/bootfarm-edge/proxy
ExecStart=/usr/local/bin/bootfarm-edge serve --data /var/lib/bootfarm-edge --boot-files /var/lib/bootfarm-edge/boot-files $BOOTFARM_EDGE_OPTIONS
# The program that lies there now takes over the sockets of the one that runs.
ExecReload=/bin/kill -USR2 $MAINPID
Restart=always
RestartSec=1
# The packet loop says once a second that it turns.
WatchdogSec=10
TimeoutStartSec=60
TimeoutStopSec=15
TimeoutAbortSec=2
LimitNOFILE=65536

User=bootfarm-edge
Group=bootfarm-edge
StateDirectory=bootfarm-edge
StateDirectoryMode=0700
UMask=0077
# Ports below 1024, and listening to what the segment's other servers say. Nothing else is ever needed.
AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_NET_RAW
CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_NET_RAW
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
DevicePolicy=closed
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK AF_PACKET
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
END
	systemctl daemon-reload
}

start_service() {
	restart_words='systemctl restart bootfarm-edge'
	write_unit
	on_failure 'systemctl disable --now bootfarm-edge >/dev/null 2>&1'
	systemctl enable bootfarm-edge >/dev/null 2>&1
	# Until the edge has said that it serves.
	if ! systemctl restart bootfarm-edge; then
		journalctl -u bootfarm-edge -n 20 --no-pager -o cat >&2 || true
		keep_joined
		fail "The edge did not start; above is what it said. Its identity stays in $data: the next run needs no token."
	fi
}

# What the control plane knows it by must not be lost with a service that does not start.
keep_joined() {
	undo=$(printf '%s' "$undo" | sed "s#rm -rf '$data';##; s#remove_user;##")
}

write_run() {
	restart_words='Then start it again.'
	cat >"$configuration/run" <<'END'
#!/bin/sh
# Starts the edge as its own user, with the two capabilities that it needs, where there is no systemd.
set -eu
. /etc/bootfarm-edge/options
if [ -r /etc/bootfarm-edge/proxy ]; then
	. /etc/bootfarm-edge/proxy
	export HTTPS_PROXY HTTP_PROXY NO_PROXY
fi
capabilities=+net_bind_service,+net_raw
# shellcheck disable=SC2086
exec setpriv --reuid bootfarm-edge --regid bootfarm-edge --clear-groups --no-new-privs \
	--inh-caps "$capabilities" --ambient-caps "$capabilities" --bounding-set "-all,$capabilities" \
	/usr/local/bin/bootfarm-edge serve --data /var/lib/bootfarm-edge \
	--boot-files /var/lib/bootfarm-edge/boot-files $BOOTFARM_EDGE_OPTIONS
END
	chmod 755 "$configuration/run"
}

running_pid() {
	for link in /proc/[0-9]*/exe; do
		case $(readlink "$link" 2>/dev/null) in
		*"$program" | *"$program (deleted)") ;;
		*) continue ;;
		esac
		link=${link#/proc/}
		printf '%s' "${link%/exe}"
		return 0
	done
}

install_edge() {
	check_root
	check_systemd
	check_machine
	check_tools
	choose_uplink
	is_running=$(running_pid)
	trouble=''
	download
	place_program
	if [ -z "$is_new" ] && [ -z "$token" ] && [ -f "$data/identity.json" ] && [ -z "$listens$serve_options$new_uplink" ] &&
		[ -f "$configuration/options" ] && { [ -z "$with_systemd" ] || systemctl -q is-active bootfarm-edge; }; then
		say "bootfarm-edge $version is already installed and runs; nothing was changed."
		return 0
	fi
	make_user
	make_folders
	configure
	check_ports
	check_devices
	join
	make_store
	bring_busybox
	write_configuration
	if [ -n "$with_systemd" ]; then start_service; else write_run; fi
	undo=''
	import_boot_programs
	self_check
	say ''
	if [ -n "$with_systemd" ]; then
		say "bootfarm-edge $version is installed and runs; the dashboard at $control_url shows it online."
		say 'What it says: journalctl -u bootfarm-edge. Its options: /etc/bootfarm-edge/options.'
	else
		say "bootfarm-edge $version is installed. Start it with $configuration/run; the dashboard then shows it online."
	fi
	say "To take it away: curl -fsSL $control_url/install/edge.sh | sudo sh -s -- --uninstall"
	[ -z "$trouble" ] || exit 2
}

uninstall_edge() {
	check_root
	if [ -f "$unit" ] && has systemctl; then
		systemctl disable --now bootfarm-edge >/dev/null 2>&1 || true
		rm -f "$unit"
		systemctl daemon-reload || true
		systemctl reset-failed bootfarm-edge >/dev/null 2>&1 || true
	fi
	pid=$(running_pid)
	[ -z "$pid" ] || fail "The edge still runs as process $pid; end it, and run this again."
	rm -rf "$program" "$program.new" "$configuration"
	if [ -z "$keep_data" ]; then rm -rf "$data"; fi
	remove_user
	if [ -n "$keep_data" ]; then
		say "bootfarm-edge is gone; its identity, reports and disks stay in $data, and the next installation goes on with them."
	else
		say 'bootfarm-edge is gone, with all that it kept. Revoke it in the dashboard, so that its place at the site is free.'
	fi
}

main() {
	umask 022
	read_arguments "$@"
	trap finish EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	if [ "$action" = uninstall ]; then uninstall_edge; else install_edge; fi
}

# In one line, and last: a script that was cut off on the way does nothing. What it runs must not read the rest of it.
main "$@" </dev/null; exit
