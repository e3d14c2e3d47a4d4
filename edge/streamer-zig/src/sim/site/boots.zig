//! The boots of the simulated edge: finds or begins the boot that a packet belongs to, tells it what happened, and writes
//! journal and report before any answer goes out. It does with the real boot table what the host does with it, and tells
//! the ledger.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const stream = @import("wire").stream;
const Ledger = @import("ledger.zig");
const Journal = @import("journal.zig");
const Version = @import("disk.zig").Version;
const Boot = core.boot.Boot;

pub const Boots = @This();

pub const Ref = core.boot.Table.Ref;
pub const versions_max = 2;

table: core.boot.Table,
policy: core.boot.Policy,
journal: *Journal,
ledger: *Ledger,
prng: *base.Prng,
versions: *const [versions_max]Version,
/// A made-up wall clock: the monotonic one and a constant.
unix_ms_at_0: u64 = 1_795_000_000_000,
full_count: u32 = 0,
orders: core.site.PowerOrders = .{},

/// The boot that a DHCP request belongs to, or begins; null: the device is to be ignored.
pub fn forDhcp(boots: *Boots, now_us: u64, client: *const core.boot.Client, xid: u32, size: usize) ?Ref {
    const request: core.boot.DhcpRequest = .{
        .message = if (client.message_type == .discover) .discover else .request,
        .client = if (client.loader == .ipxe) .ipxe else .rom,
        .xid = xid,
        .size = @intCast(size),
    };
    const ref = boots.continued(now_us, client.mac, request) orelse boots.begin(now_us, client.mac) orelse return null;
    const boot = boots.table.get(ref).?;
    if (boot.facts.client_arch == null) {
        boot.facts.client_arch = @backingInt(client.arch);
        boot.facts.vendor_class = client.vendor_class;
        boot.facts.user_class = client.user_class;
    }
    if (client.machine_id) |id| boot.facts.machine_id = id;
    if (client.ip) |ip| boot.facts.ip = ip;
    boots.apply(ref, now_us, .{ .dhcp_request = request });
    return ref;
}

/// The boot of a path `b/<handle>/...`, or of the address that asks for a bare name.
pub fn forPath(boots: *const Boots, handle: ?core.boot.Handle, ip: base.Ip4) ?Ref {
    if (handle) |known| return boots.table.findByHandle(known.value);
    return boots.table.findActiveByIp(ip);
}

pub fn get(boots: *Boots, ref: Ref) ?*Boot {
    return boots.table.get(ref);
}

pub fn apply(boots: *Boots, ref: Ref, now_us: u64, event: core.boot.Event) void {
    boots.table.apply(ref, now_us, event);
    if (boots.table.get(ref)) |boot| boots.settle(boot);
}

/// What a running device says of itself; returns what waits for it.
pub fn takeReport(boots: *Boots, now_us: u64, said: *const core.stream.Server.DeviceReport) stream.ReportAck {
    const ref = boots.table.findById(said.boot_id) orelse return .{};
    var report = said.report;
    if (!boots.orders.take(said.boot_id, .fromBytes(report.order_id))) report.order_id = @splat(0);
    boots.apply(ref, now_us, .{ .guest = report });
    return boots.orders.waitingFor(said.boot_id);
}

/// A new desired state, or the one from the disk.
pub fn takeOrders(boots: *Boots, wanted: []const core.uplink.desired_state.PowerOrder) void {
    boots.orders.update(wanted, &boots.table, boots, keepOrder);
}

fn keepOrder(boots: *Boots, bound: core.site.PowerOrders.BoundOrder) void {
    boots.journal.writeOrder(bound);
    boots.ledger.noteOrder(bound);
}

pub fn journalNow(boots: *Boots, boot: *Boot) void {
    boots.journal.write(boot);
    boot.touched = false;
}

pub fn versionOf(boots: *const Boots, boot: *const Boot) ?*const Version {
    for (boots.versions) |*version| if (version.id.eql(boot.assignment.version_id)) return version;
    return null;
}

/// Once a second: ends silent boots and keeps the counts of the others.
pub fn tick(boots: *Boots, now_us: u64) void {
    boots.table.tick(now_us);
    var iterator = boots.table.iterate();
    while (iterator.next()) |boot| {
        boots.settle(boot);
        if (boot.touched) boots.journalNow(boot);
    }
}

/// Begins a boot whatever the device's last one is doing.
pub fn begin(boots: *Boots, now_us: u64, mac: base.Mac) ?Ref {
    const target = switch (boots.policy.decide(mac, boots.unix_ms_at_0 + now_us / std.time.us_per_ms)) {
        .target => |target| target,
        .ignored_device, .unknown_device, .disabled, .version_missing => return null,
    };
    if (boots.table.findByMac(mac)) |earlier| {
        boots.table.supersede(earlier, now_us);
        boots.settle(boots.table.get(earlier).?);
    }
    var random: [40]u8 = undefined;
    boots.prng.fill(&random);
    const boot: Boot = .init(.{
        .id = .fromRandom(random[0..16].*),
        .mac = mac,
        .handle = std.mem.readInt(u64, random[32..40], .big) | 1,
        .token = random[16..32].*,
    }, target.assignment, now_us, boots.unix_ms_at_0 + now_us / std.time.us_per_ms);
    const ref = boots.table.insert(boot, now_us) catch {
        boots.full_count += 1;
        return null;
    };
    boots.ledger.noteBegin(boot.identity.id, Ledger.deviceOf(mac), boots.versionOf(&boot).?.*);
    return ref;
}

/// Writes what has changed: the journal first, then the report.
pub fn settle(boots: *Boots, boot: *Boot) void {
    if (!boot.changed) return;
    boot.changed = false;
    boot.revision += 1;
    boots.journalNow(boot);
    var buffer: [core.boot.report.size_max]u8 = undefined;
    _ = core.boot.report.encode(boot, .{ .revision = boot.revision }, &buffer);
    boots.ledger.noteReport(boot);
    boot.live_changes = .{};
}

fn continued(boots: *Boots, at_us: u64, mac: base.Mac, request: core.boot.DhcpRequest) ?Ref {
    const ref = boots.table.findByMac(mac) orelse return null;
    return switch (boots.table.get(ref).?.dhcpMeaning(at_us, request)) {
        .same_boot => ref,
        .new_boot => null,
    };
}
