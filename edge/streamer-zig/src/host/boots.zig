//! The boots of this edge as the packet loop sees them: finds or begins the boot that a packet
//! belongs to, tells it what happened, and writes journal and report as soon as a phase changes,
//! before any answer goes out.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const stream = @import("wire").stream;
const wire = @import("wire");
const sys = @import("sys.zig");
const BootJournal = @import("boot_journal.zig").BootJournal;
const Discovery = @import("discovery.zig").Discovery;
const ReportLog = @import("report_log.zig").ReportLog;
const version_table = @import("version_table.zig");
const write_layers = @import("write_layers.zig");
const assert = std.debug.assert;

const Boot = core.boot.Boot;
const VersionTable = version_table.VersionTable;

pub const Boots = struct {
    table: core.BootTable,
    policy: core.BootPolicy = .nothing,
    versions: VersionTable,
    /// Where paths of the desired state begin; null in standalone use.
    store_fd: ?i32 = null,
    /// Null where nothing is kept on disk.
    log: ?*ReportLog = null,
    journal: ?*BootJournal = null,
    /// What waits for running devices.
    orders: core.PowerOrders = .{},
    /// Where the site has several edges, what they say; null in standalone use.
    peers: ?*core.PeerTable = null,
    /// Null where there is nobody to tell of unknown devices.
    discovery: ?*Discovery = null,
    /// The first address of this edge's own network.
    network: base.Ip4 = .zero,
    /// Of every boot in standalone use.
    write_cache: write_layers.Wanted = .{},
    listener: Listener,
    ignored: base.IgnoredCounters = .{},

    pub const Ref = core.BootTable.Ref;

    /// Who wants to know.
    pub const Listener = struct {
        context: *anyopaque,
        /// A report was written; `boot.news` says of what.
        reported: *const fn (context: *anyopaque, boot: *const Boot) void,
        /// Another report was written.
        written: *const fn (context: *anyopaque) void,
        /// A boot cannot begin since its version cannot be opened.
        version_problem: *const fn (context: *anyopaque, problem: version_table.Problem) void,
    };

    pub fn deinit(boots: *Boots, gpa: std.mem.Allocator) void {
        boots.table.deinit(gpa);
        boots.versions.deinit(gpa);
        boots.* = undefined;
    }

    /// The boot that a DHCP request belongs to, or begins; null: the device is to be ignored.
    pub fn forDhcp(
        boots: *Boots,
        now_us: u64,
        client: *const core.BootClient,
        xid: u32,
        size: usize,
    ) ?Ref {
        const request = dhcpRequestOf(client, xid, size);
        const ref = boots.continued(client.mac, request) orelse
            boots.begin(now_us, client.mac) orelse return null;
        const boot = boots.table.get(ref).?;
        // Facts are the firmware's: what iPXE says later is about itself.
        if (boot.facts.client_arch == null) {
            boot.facts.client_arch = @backingInt(client.arch);
            boot.facts.vendor_class = client.vendor_class;
            boot.facts.user_class = client.user_class;
        }
        if (client.machine_id) |id| boot.facts.machine_id = id;
        if (client.ip) |ip| boot.facts.ip = ip;
        boots.apply(ref, now_us, .{ .dhcp_request = request });
        boots.note(ref, now_us, .from_device, .{ .name = switch (client.message_type) {
            .discover => .dhcp_discover,
            .request => .dhcp_request,
            .inform => .dhcp_inform,
            else => .dhcp_other,
        } });
        return ref;
    }

    pub fn dhcpRequestOf(client: *const core.BootClient, xid: u32, size: usize) core.boot.DhcpRequest {
        return .{
            .message = if (client.message_type == .discover) .discover else .request,
            .client = if (client.loader == .ipxe) .ipxe else .rom,
            .xid = xid,
            .size = @intCast(size),
        };
    }

    /// The device has turned to this edge by name: the boot is this edge's.
    pub fn take(boots: *Boots, ref: Ref) void {
        const boot = boots.table.get(ref) orelse return;
        boot.is_taken = true;
        if (boots.peers) |peers| peers.noteBoot(boot);
    }

    /// The device has taken another edge's answer: what was begun here was no boot. `to`: that edge.
    pub fn withdraw(boots: *Boots, ref: Ref, to: base.Uuid) void {
        const boot = boots.table.get(ref) orelse return;
        if (boots.peers) |peers| peers.dropBoot(boot);
        if (boots.journal) |journal| journal.writeWithdrawn(boot);
        if (boots.log) |log| if (boot.revision > 0) {
            _ = log.appendWithdrawn(boot.identity.id, to);
            boots.listener.written(boots.listener.context);
        };
        boots.table.remove(ref);
    }

    /// A device that is not in the desired state asks by DHCP.
    pub fn discover(boots: *Boots, now_us: u64, request: *const core.DhcpService.BootRequest) void {
        const discovery = boots.discovery orelse return;
        if (boots.policy.source == .nothing) return;
        if (discovery.noteDhcp(now_us, &boots.policy, request)) boots.listener.written(boots.listener.context);
    }

    /// A device that got no boot asked for its script.
    pub fn discoverByHttp(boots: *Boots, now_us: u64, mac: base.Mac, ip: base.Ip4, query: ?core.MediaQuery) void {
        const discovery = boots.discovery orelse return;
        if (boots.policy.source == .nothing or boots.policy.decide(mac, sys.unixMs()) != .unknown_device) return;
        if (discovery.noteHttp(now_us, &boots.policy, mac, ip, query)) boots.listener.written(boots.listener.context);
    }

    /// The device has begun a boot of which this edge has no more than that.
    pub fn endEarlier(boots: *Boots, now_us: u64, mac: base.Mac) void {
        const ref = boots.table.findByMac(mac) orelse return;
        boots.table.supersede(ref, now_us);
        boots.settle(boots.table.get(ref).?);
    }

    /// The boot of a script that was asked for by address, without our DHCP.
    pub fn forScript(boots: *Boots, now_us: u64, mac: base.Mac, ip: base.Ip4) ?Ref {
        const ref = blk: {
            if (boots.table.findByMac(mac)) |ref| {
                const boot = boots.table.get(ref).?;
                const phase = boot.current() orelse .dhcp;
                if (!boot.isOver() and @backingInt(phase) <= @backingInt(
                    core.boot_phase.Phase.loader,
                )) break :blk ref;
            }
            break :blk boots.begin(now_us, mac) orelse return null;
        };
        boots.table.get(ref).?.facts.ip = ip;
        return ref;
    }

    /// The boot of a path `b/<handle>/...`, or of the address that asks for a bare name.
    pub fn forPath(boots: *const Boots, handle: ?core.BootHandle, ip: base.Ip4) ?Ref {
        if (handle) |known| return boots.table.findByHandle(known.value);
        return boots.table.findActiveByIp(ip);
    }

    /// A power command was sent: it begins a boot, unless the device is in the middle of one.
    pub fn powerOn(boots: *Boots, now_us: u64, mac: base.Mac) void {
        if (!mac.isDevice()) return;
        if (boots.table.findByMac(mac)) |ref| if (!boots.table.get(ref).?.isOver()) return;
        // Every edge of the site sends the packet, and one of them waits for the device.
        if (boots.peers) |peers| if (!peers.isOwn(now_us, mac, boots.network)) return;
        const ref = boots.begin(now_us, mac) orelse return;
        boots.apply(ref, now_us, .power_command);
    }

    pub fn learnAddress(boots: *Boots, mac: base.Mac, ip: base.Ip4) void {
        const ref = boots.table.findByMac(mac) orelse return;
        boots.table.get(ref).?.facts.ip = ip;
    }

    /// The address that a download or stream came from, where DHCP has not shown one.
    pub fn learnPeer(boots: *Boots, ref: Ref, ip: base.Ip4) void {
        const boot = boots.table.get(ref) orelse return;
        if (boot.facts.ip == null) boot.facts.ip = ip;
    }

    pub fn apply(boots: *Boots, ref: Ref, now_us: u64, event: core.boot.Event) void {
        boots.table.apply(ref, now_us, event);
        if (boots.table.get(ref)) |boot| boots.settle(boot);
    }

    /// A packet of this boot passed.
    pub fn note(
        boots: *Boots,
        ref: Ref,
        now_us: u64,
        direction: core.boot_packets.Direction,
        packet: core.boot_packets.Packet,
    ) void {
        if (boots.table.get(ref)) |boot| boot.note(now_us, direction, packet);
    }

    /// This edge answers a device by DHCP; `payload` is the whole answer.
    pub fn noteDhcpAnswer(boots: *Boots, ref: Ref, now_us: u64, server_ip: base.Ip4, payload: []const u8) void {
        const boot = boots.table.get(ref) orelse return;
        var scratch: wire.dhcp.Scratch = undefined;
        const packet = wire.dhcp.parse(payload, &scratch) catch return;
        const name: core.boot_packets.Name = switch (packet.options.message_type orelse return) {
            .offer => .dhcp_offer,
            .ack => .dhcp_ack,
            else => .dhcp_nak,
        };
        boot.note(now_us, .from_edge, .{ .name = name });
        if (core.boot_packets.Offer.of(&packet, server_ip, true)) |offer| boot.hearOffer(now_us, offer);
    }

    /// The menu that a boot's device is to show; null: it has none, or what it starts is settled.
    pub fn menuOf(boots: *const Boots, boot: *const Boot) ?core.BootMenu {
        if (!boot.mayChoose()) return null;
        return boots.policy.menuOf(boot.identity.mac, sys.unixMs());
    }

    /// What was taken in the menu, by hand or by its time-out; on disk when it returns.
    pub fn choose(boots: *Boots, ref: Ref, now_us: u64, choice: core.boot_menu.Choice) void {
        const assignment: ?core.boot.Assignment = switch (choice.start) {
            .version => |version| version,
            .local_disk => null,
        };
        boots.apply(ref, now_us, .{ .loader_begin = .script });
        boots.apply(ref, now_us, .{ .menu_choice = .{ .title = choice.title, .assignment = assignment } });
        if (assignment == null) boots.apply(ref, now_us, .left_to_local_disk);
    }

    /// What a running device says of itself; returns what waits for it.
    pub fn takeReport(boots: *Boots, now_us: u64, said: *const core.StreamServer.DeviceReport) stream.ReportAck {
        const ref = boots.table.findById(said.boot_id) orelse return .{};
        var report = said.report;
        if (!boots.orders.take(said.boot_id, .fromBytes(report.order_id))) report.order_id = @splat(0);
        boots.apply(ref, now_us, .{ .guest = report });
        return boots.orders.waitingFor(said.boot_id);
    }

    pub fn get(boots: *Boots, ref: Ref) ?*Boot {
        return boots.table.get(ref);
    }

    /// Where a boot's writes are to be kept; null: in a way that this edge does not know.
    pub fn writeCacheOf(boots: *const Boots, boot: *const Boot) ?write_layers.Wanted {
        const state = switch (boots.policy.source) {
            .nothing, .standalone => return boots.write_cache,
            .state => |state| state,
        };
        const vdisk_id = boot.assignment.vdisk_id orelse return .{};
        const order = for (state.vdisks) |*vdisk| {
            if (vdisk.id.eql(vdisk_id)) break vdisk.writeCache orelse return .{};
        } else return .{};
        return .{
            .class = std.meta.stringToEnum(stream.WriteCacheClass, order.class) orelse return null,
            .limit_bytes = order.limitBytes,
        };
    }

    /// The open version of a boot; opens it if it can be.
    pub fn versionOf(boots: *Boots, boot: *const Boot) ?*version_table.Version {
        const id = boot.assignment.version_id;
        if (boots.versions.find(id)) |version| return version;
        return if (boots.openVersion(id) == null) boots.versions.find(id) else null;
    }

    /// Why a device cannot start what it is assigned, as far as the edge can tell; null: nothing
    /// speaks against it.
    pub fn obstacleOf(boots: *Boots, boot: *const Boot) ?core.kernel_fit.Misfit {
        const id = boot.assignment.version_id;
        const version = boots.versions.find(id) orelse {
            if (boots.openVersion(id)) |problem| return missing(problem);
            return boots.obstacleOf(boot);
        };
        if (version.disk_shortage) |shortage|
            return .{ .cause = .disk_truncated, .text = shortage.text() };
        const files = if (version.loader_files) |*files| files else return null;
        const arch: ?wire.dhcp.ClientArch = if (boot.facts.client_arch) |number|
            @fromBackingInt(number)
        else
            null;
        return core.kernel_fit.judge(files, arch);
    }

    fn missing(problem: version_table.Problem) core.kernel_fit.Misfit {
        var buffer: [base.UntrustedText.size_max]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&buffer);
        // What is too long is cut.
        writer.print("{f}", .{problem}) catch {};
        return .{ .cause = .version_missing, .text = .init(writer.buffered()) };
    }

    /// The state as it is on disk must be what is in memory, before the device learns that its
    /// token is used.
    pub fn journalNow(boots: *Boots, boot: *Boot) void {
        const journal = boots.journal orelse return;
        journal.write(boot);
        boot.touched = false;
    }

    /// Once a second: ends silent boots, and keeps the counts of the others on disk.
    pub fn tick(boots: *Boots, now_us: u64) void {
        // Boots of before a start may have gone on at other edges, who say so first.
        const others_may_know = if (boots.peers) |peers| peers.isStarting(now_us) else false;
        if (!others_may_know) boots.table.tick(now_us);
        var iterator = boots.table.iterate();
        while (iterator.next()) |boot| {
            boots.settle(boot);
            if (boot.touched) boots.journalNow(boot);
        }
        if (boots.journal) |journal| journal.compact(&boots.table);
        if (boots.discovery) |discovery| if (discovery.report(now_us, &boots.policy)) boots.listener.written(boots.listener.context);
    }

    /// The boot that a request goes on with; null: it would begin one.
    pub fn continued(boots: *Boots, mac: base.Mac, request: core.boot.DhcpRequest) ?Ref {
        const ref = boots.table.findByMac(mac) orelse return null;
        return switch (boots.table.get(ref).?.dhcpMeaning(request)) {
            .same_boot => ref,
            .new_boot => null,
        };
    }

    fn begin(boots: *Boots, now_us: u64, mac: base.Mac) ?Ref {
        const target = switch (boots.policy.decide(mac, sys.unixMs())) {
            .ignored_device, .unknown_device, .disabled => return null,
            .version_missing => {
                boots.listener.version_problem(boots.listener.context, .not_described);
                return null;
            },
            .target => |target| target,
        };
        if (boots.table.findByMac(mac)) |earlier| {
            boots.table.supersede(earlier, now_us);
            boots.settle(boots.table.get(earlier).?);
        }
        const boot: Boot = .init(newIdentity(mac), target.assignment, now_us, sys.unixMs());
        const ref = boots.table.insert(boot, now_us) catch {
            boots.ignored.add(.boot_table_full);
            return null;
        };
        // Not its end yet: its script says it on the device's console, and by then it may be over.
        if (boots.versions.find(target.assignment.version_id) == null) {
            if (boots.openVersion(target.assignment.version_id)) |problem| {
                const misfit = missing(problem);
                boots.apply(ref, now_us, .{
                    .suspected = .{ .cause = misfit.cause, .text = misfit.text },
                });
            }
        }
        return ref;
    }

    /// Null when the version is open.
    fn openVersion(boots: *Boots, id: base.Uuid) ?version_table.Problem {
        const state = switch (boots.policy.source) {
            .state => |state| state,
            .nothing, .standalone => return .not_described,
        };
        const described = version_table.describedVersion(state, id) orelse return .not_described;
        const store_fd = boots.store_fd orelse return .not_described;
        const problem = boots.versions.open(store_fd, described) orelse return null;
        boots.listener.version_problem(boots.listener.context, problem);
        return problem;
    }

    /// Writes what has changed: the report of a phase that began or ended, and the journal with it.
    fn settle(boots: *Boots, boot: *Boot) void {
        if (!boot.changed) return;
        boot.changed = false;
        boot.revision += 1;
        if (boots.peers) |peers| peers.noteBoot(boot);
        boots.journalNow(boot);
        // Its end comes as a report of its own; what is in between would take the room of other boots.
        const is_kept = boot.isOver() or if (boots.log) |log| !log.isBehind() else false;
        if (is_kept) if (boots.log) |log| {
            var buffer: [core.boot_report.size_max]u8 = undefined;
            _ = log.appendBoot(
                core.boot_report.encode(boot, .{ .revision = boot.revision }, &buffer),
            );
        };
        boots.listener.reported(boots.listener.context, boot);
        boot.news = .{};
    }
};

fn newIdentity(mac: base.Mac) core.boot.Identity {
    var random: [40]u8 = undefined;
    sys.random(&random);
    const handle = std.mem.readInt(u64, random[32..40], .big);
    return .{
        .id = .fromRandom(random[0..16].*),
        .mac = mac,
        .handle = if (handle == 0) 1 else handle,
        .token = random[16..32].*,
    };
}
