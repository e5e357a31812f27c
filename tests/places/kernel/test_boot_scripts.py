# SPDX-License-Identifier: GPL-3.0-or-later
"""A line that sets a sysctl at boot is found in whatever runs then, and only there."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from mlhost_limits.kernel import boot_scripts
from mlhost_limits.kernel.boot_calls import find_called, find_globs, find_loaded, list_paths
from mlhost_limits.kernel.boot_scripts import find_script_writes
from mlhost_limits.kernel.boot_units import Script, mark

KEY = "vm.max_map_count"
FILE = "/proc/sys/vm/max_map_count"
UDEV = "/etc/udev/rules.d/90-x.rules"
RC, UNIT, CRON = "/etc/rc.local", "/etc/systemd/system/x.service", "/etc/cron.d/x"
TMPFILES = "/etc/tmpfiles.d/x.conf"
CRONTAB = "/var/spool/cron/crontabs/root"


@pytest.mark.parametrize(
    ("path", "line", "expected"),
    [
        (RC, f"sysctl -w {KEY}=7", ["7"]),
        (RC, f"/sbin/sysctl -q -w {KEY}=7 >/dev/null", ["7"]),
        (RC, f'sysctl "{KEY} = 7"', ["7"]),
        (RC, f"sysctl -w vm.swappiness=1 {KEY}=7", ["7"]),
        (RC, "sysctl -w vm/max_map_count=7", ["7"]),
        (RC, f"sysctl -w {KEY}=$N", [""]),
        (RC, f"sysctl -w {KEY}s=7", []),
        (RC, f"sysctl -w x.{KEY}=7", []),
        (RC, f"  # sysctl -w {KEY}=7", []),
        (RC, f"sysctl -n {KEY}", []),
        (RC, "echo 7 > /proc/sys/vm/max_map_count", ["7"]),
        (RC, "echo -n '7'>/proc/sys/vm/max_map_count", ["7"]),
        (RC, "echo 7 | sudo tee /proc/sys/vm/max_map_count", ["7"]),
        (RC, "echo 7 > /proc/sys/vm/max_map_count_x", []),
        (RC, f"cat {FILE}", []),
        (RC, f"printf 7 > {FILE}", ["7"]),
        (RC, f"printf '%s\\n' 7 > {FILE}", ["7"]),
        (RC, f"printf '7\\n' | tee -a {FILE}", ["7"]),
        (RC, f'echo 7 1>"{FILE}"', ["7"]),
        (RC, f"cat /x > {FILE}", [""]),
        (RC, f"dd if=/x of={FILE}", [""]),
        (RC, f"mysysctl -w {KEY}=7; sysctl -w {KEY}=7", ["7", ""]),
        (RC, f"myecho 7 > {FILE}; echo 7 > {FILE}", ["7", ""]),
        (RC, f"echo 7 > {FILE}-old; echo 7 > {FILE}", ["7"]),
        (RC, f"tee {FILE} <<< 7", [""]),
        (RC, "cd /proc/sys/vm && echo 7 > max_map_count", [""]),
        (RC, "echo 7 > max_map_count", []),
        (RC, f"K={KEY}; sysctl -w $K=7", [""]),
        (RC, f"for k in {KEY} fs.nr_open; do sysctl -w $k=7; done", [""]),
        (RC, f'python3 -c \'open("{FILE}", "w").write("7")\'', [""]),
        (RC, f"test -e {FILE} || exit 0", []),
        (RC, f'[ "$(cat {FILE})" -lt 5 ] && exit 1', []),
        (RC, f"read n < {FILE}; cp {FILE}.bak /x", []),
        (RC, f"sysctl -n {KEY} > /dev/null", []),
        (RC, f'echo "{KEY} is too low"', []),
        (RC, f"logger {KEY}; true", []),
        (RC, f"echo 'set {KEY}=5' >> /etc/motd", []),
        (RC, f"echo '{KEY} is low' >&2; exit 1", []),
        (RC, f"echo '{KEY}=5' > /etc/sysctl.d/99-x.conf && sysctl --system", ["", ""]),
        (RC, 'while read k v; do sysctl -w "$k=$v"; done < /opt/list', [""]),
        (RC, "sysctl -w $ARGS", [""]),
        (RC, "sysctl -p ${FILE}", [""]),
        (RC, "/lib/systemd/systemd-sysctl $FILE", [""]),
        (UDEV, 'RUN+="/lib/systemd/systemd-sysctl --prefix=/net/$name"', []),
        (RC, "sysctl $k=5", [""]),
        (RC, "sysctl -n $k", []),
        (RC, "sysctl $OPTS", [""]),
        (RC, "sysctl -w `cat /etc/list`", [""]),
        (RC, "xargs -n1 sysctl -w < /etc/list", [""]),
        (RC, "sysctl -p /etc/my*.conf", [""]),
        (RC, "cd /etc && sysctl -p my.conf", [""]),
        (RC, "echo 5 > $P/max_map_count", [""]),
        (RC, "echo 5 > $R/sys/vm/max_map_count", [""]),
        (RC, "echo 5 > $R/sys/vm/swappiness", []),
        (RC, "echo 5 > /proc/sys/vm/max_map_c*", [""]),
        (RC, "sysctl -w net.ipv4.conf.$IF.rp_filter=1", []),
        (RC, "echo 5 > /proc/sys/$k", [""]),
        (RC, "echo 5 | tee /proc/sys/vm/$k", [""]),
        (RC, "echo 5 > /proc/sys/net/$k", []),
        (RC, "cat /proc/sys/vm/$k > /dev/null", []),
        # What bash makes of a line, and where a script has gone.
        (RC, "sysctl -w vm.{max_map_count,swappiness}=7", [""]),
        (RC, "sysctl -w vm.max_{map_count,x}=7", [""]),
        (RC, "sysctl -w vm.{overcommit_memory,swappiness}=7", []),
        (RC, "echo 7 | tee /proc/sys/vm/{swappiness,max_map_count}", [""]),
        (RC, "pushd /proc/sys/vm; echo 7 > max_map_count", [""]),
        (RC, "cd /proc/sys && echo 7 > vm/max_map_count", [""]),
        (RC, "cd /proc/; echo 7 > sys/vm/max_map_count", [""]),
        (RC, "cd /proc/sys; cd vm; echo 7 > max_map_count", [""]),
        (RC, "cd /proc/sys/net && echo 7 > max_map_count", []),
        # What a line is given, or makes itself, and has read.
        (RC, f"echo {KEY}=7 > /run/x; sysctl -p /run/x", [""]),
        (RC, "echo vm.swappiness=7 > /run/x; sysctl -p /run/x", []),
        (RC, f"echo {KEY}=7 | sysctl -p -", [""]),
        (RC, "echo vm.swappiness=7 | sysctl -p -", []),
        (RC, "curl -s http://x/y | sysctl -p /dev/stdin", [""]),
        (RC, "cp /opt/x /run/x && sysctl -p /run/x", [""]),
        (RC, "cp /opt/x /etc/sysctl.d/x.conf; sysctl --system", [""]),
        *(
            (RC, f"{words}\n{load}", [""])
            for words in (
                "sed -i s/2/7/ /etc/sysctl.d/a.conf",
                "sed --in-place s/2/7/ /etc/sysctl.d/a.conf",
                "sed 's/2;/7/' -i /etc/sysctl.d/a.conf",
                "perl -pi -e s/2/7/ /etc/sysctl.d/a.conf",
                f"cp {'/opt/x ' * 99} /etc/sysctl.d",
            )
            for load in (
                "sysctl -p /etc/sysctl.d/a.conf",
                "/lib/systemd/systemd-sysctl 2>/dev/null",
                "systemctl start systemd-sysctl",
                "service systemd-sysctl restart",
            )
        ),
        (RC, "ln -s /opt/x /etc/sysctl.d/x.conf; systemctl restart systemd-sysctl", [""]),
        (RC, f"echo 'sysctl -w {KEY}=7' > /run/x; sh /run/x", [""]),
        (RC, f"echo 'sysctl -w {KEY}=7' | sh", ["7"]),
        (RC, f"(date; echo '@reboot sysctl -w {KEY}=7') | crontab -", [""]),
        (RC, f"eval $(echo sysctl -w {KEY}=7)", [""]),
        # Words that another host runs, or a container.
        (RC, f"ssh other sysctl -w {KEY}=7", []),
        (RC, f"/usr/bin/ssh -o BatchMode=yes root@other 'sysctl -w {KEY}=7' && true", []),
        (RC, f"ssh other <<EOF\nsysctl -w {KEY}=7\nEOF", []),
        (RC, f"ssh other \\\n sysctl -w {KEY}=7", []),
        (RC, f"docker run -d --sysctl {KEY}=7 redis", []),
        (RC, f"docker run -d -v /data:/data --sysctl {KEY}=7 redis", []),
        (RC, f"docker run -d \\\n --sysctl {KEY}=7 \\\n redis", []),
        (UNIT, f"ExecStart=/usr/bin/docker run --sysctl {KEY}=7 redis", []),
        (RC, f"sysctl --dry-run -w {KEY}=7", []),
        # It may be this host, or a container with its rights.
        *(
            (RC, f"{words} sysctl -w {KEY}=7", [""])
            for words in (
                "ssh localhost",
                "ssh ::1",
                "ssh root@127.0.1.1",
                'ssh "$HOST"',
                "nohup ssh other",
                "docker exec web",
                "kubectl exec p --",
                "docker run --privileged alpine",
                "docker run --cap-add=ALL alpine",
                "docker run -v /:/host alpine chroot /host",
                "docker run -v /proc/sys/vm:/s alpine",
                "ip netns exec blue",
                "true; ip -n a netns exec b",
                "for n in a b; do ip netns exec $n",
                "docker pull x && docker run --privileged x",
            )
        ),
        # A second backslash ends a command; a variable may hold a right.
        (RC, f"ssh other uptime \\\\\nsysctl -w {KEY}=7", ["7"]),
        (RC, f"docker run $OPTS alpine sysctl -w {KEY}=7", [""]),
        (RC, f"docker run -itv  //:/host alpine chroot /host sysctl -w {KEY}=7", [""]),
        (RC, f"podman run --unmask=ALL alpine sysctl -w {KEY}=7", [""]),
        (RC, f"ssh $(head -1 /etc/nodes) sysctl -w {KEY}=7", [""]),
        (RC, f"ip netns exec blue \\\n sysctl -w {KEY}=7", [""]),
        (RC, f"docker run --privileged \\\n alpine sysctl -w {KEY}=7", [""]),
        (RC, f'sh -c "docker exec x sysctl -w {KEY}=7"', [""]),
        (CRON, f"@reboot root docker run --privileged x sysctl -w {KEY}=7", [""]),
        (RC, f"docker start web; sysctl -w {KEY}=7", ["7"]),
        (RC, f"ssh other true && sysctl -w {KEY}=7", ["7"]),
        # The shell here opens the file, and runs what is substituted.
        (RC, f"ssh other cat x > {FILE}", [""]),
        (RC, f'ssh other "$(sysctl -w {KEY}=7)"', [""]),
        # Comments, and what only prints, searches or compares.
        (RC, f"true # sysctl -w {KEY}=7", []),
        (RC, f"sysctl -w vm.swappiness=1  # not {KEY}=7, it's enough", []),
        (RC, f"test $# -eq 0 && echo 'a # b' && sysctl -w {KEY}=7", ["7"]),
        (RC, f"sysctl {KEY} | grep '^vm'", []),
        (RC, f"sysctl -a 2>/dev/null | grep {KEY} >> /var/log/x", []),
        (RC, f"grep '^{KEY}' /etc/sysctl.conf", []),
        (RC, f"if ! grep -q '^{KEY}' /etc/sysctl.conf; then echo '{KEY} is missing'; fi", []),
        (RC, f"grep -q '^{KEY}' /etc/x || sysctl -w {KEY}=7", ["7"]),
        (RC, f"grep {KEY} /opt/x | xargs sysctl -w", [""]),
        (RC, f"sed -n 's/^{KEY}=//p' /etc/sysctl.conf", []),
        (RC, f"sed -i 's/{KEY}=.*/{KEY}=7/' /etc/sysctl.conf", [""]),
        (RC, f'echo "run sysctl -w {KEY}=7"', []),
        (RC, f'echo "$(sysctl -w {KEY}=7)"', [""]),
        (RC, f'echo "{KEY}=$(sysctl -n {KEY})" >> /var/log/x', []),
        (RC, f'logger -t x "{KEY} is $(cat {FILE})"', []),
        (RC, f"echo '{KEY}=7' >> /etc/sysctl.conf", [""]),
        (RC, f"cp {FILE} /var/log/x", []),
        (RC, f"cp /opt/x {FILE}", [""]),
        (RC, f"[ -w {FILE} ] && echo 7 > {FILE}", ["7"]),
        (UNIT, f"ExecStart=/bin/echo 7 > {FILE}", []),
        (UNIT, f"ExecStart=/bin/true ; /sbin/sysctl -w {KEY}=7", ["7"]),
        (UNIT, f'ExecStart=/bin/sh -c "echo 7 > {FILE}"', ["7"]),
        (UDEV, f'ACTION=="add", RUN+="/sbin/sysctl -w {KEY}=7"', ["7"]),
        (UDEV, 'SYSCTL{vm/max_map_count}="7"', ["7"]),
        (UDEV, f'SYSCTL{{{KEY}}}=="7", RUN+="/bin/true"', [""]),
        (UNIT, f"ExecStart=/sbin/sysctl -w {KEY}=7", ["7"]),
        (UNIT, f"ExecStartPre=-/bin/sh -c 'sysctl {KEY}=7'", ["7"]),
        (UNIT, f"ExecStop=/sbin/sysctl -w {KEY}=7", []),
        (UNIT, f"Description=sysctl {KEY}=7", []),
        (UNIT, f"ExecStart=/bin/sh -c \\\n 'sysctl -w {KEY}=7'", ["7"]),
        (UNIT, f"ExecStart=/bin/true \\\n x\nEnvironment=A={KEY}", []),
        (f"{UNIT}.d/x.conf", f"ExecStart=/sbin/sysctl -w {KEY}=7", ["7"]),
        (UNIT, f"ExecStart=/bin/echo 7\nStandardOutput=file:{FILE}", [""]),
        (UNIT, f"ExecStart=/bin/echo 7\nStandardError=append:{FILE}", [""]),
        (UNIT, f"ExecStart=/bin/cat\nStandardInput=file:{FILE}", []),
        (TMPFILES, f"w {FILE} - - - - 7", ["7"]),
        (TMPFILES, f"w+! {FILE} - - - - %b", [""]),
        (TMPFILES, "w /proc/sys/vm/max_map_coun* - - - - 7", ["7"]),
        (TMPFILES, "w+! /proc/sys/*/max_map_[bc]ount - - - - 7", ["7"]),
        (TMPFILES, "w /proc/sys/vm/{swappiness,max_map_count} - - - - 7", ["7"]),
        (TMPFILES, "w /proc/sys/*/map_* - - - - 7", []),
        (TMPFILES, f"f+ {FILE} - - - - 7", [""]),
        (TMPFILES, f"z {FILE} 0644 - - - 7", []),
        (TMPFILES, f"# w {FILE} - - - - 7", []),
        (TMPFILES, "w /proc/sys/vm/swappiness - - - - 7", []),
        ("/etc/modprobe.d/x.conf", f"install x /sbin/modprobe -i x; sysctl -w {KEY}=7", ["7"]),
        ("/etc/network/interfaces", f"  up sysctl -w {KEY}=7", ["7"]),
        ("/etc/cloud/cloud.cfg.d/x.cfg", f"  - sysctl -w {KEY}=7", [""]),
        (CRON, f"@reboot root sysctl -w {KEY}=7", ["7"]),
        (CRON, f"*/5 * * * * root sysctl -w {KEY}=7", ["7"]),
        (CRONTAB, f"@reboot sysctl -w {KEY}=7", ["7"]),
    ],
)
def test_lines_that_set_a_key(path: str, line: str, expected: list[str]) -> None:
    first = "[Service]" if path.startswith(UNIT) else "#!/bin/sh"
    writes = list(find_script_writes(KEY, {path: f"{first}\n{line}\n"}))
    assert [write.at.value for write in writes] == expected
    for write in writes:
        assert write.at.line == (3 if "\n" in line else 2)
        if write.at.value:
            assert f"{write.before}{write.at.value}{write.after}" in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"cat > /run/x <<EOF\n{KEY}=7\nEOF\nsysctl -p /run/x", [(4, "")]),
        (f"sysctl -p - <<EOF\n{KEY}=7\nEOF", [(1, ""), (2, "")]),
        (f"sh <<EOF\nsysctl -w {KEY}=7\nEOF", [(2, "7")]),
        (f"docker run -d redis \\\n # a comment ends it\nsysctl -w {KEY}=7", [(3, "7")]),
        (f"cat <<EOF\nsysctl -w {KEY}=7\nEOF\nsysctl -w {KEY}=8", [(4, "8")]),
        (f"cat > /etc/motd <<-'EOF'\nsysctl -w {KEY}=7\n\tEOF\ntrue", []),
        (f"cat <<'END OF'\na\nEND OF\nsysctl -w {KEY}=8", [(4, "8")]),
        (f"cat <<EOF | sh\nsysctl -w {KEY}=7\nEOF", [(2, "7")]),
        (f"echo 'usage:\n sysctl -w {KEY}=7\n'; sysctl -w {KEY}=8", [(3, "8")]),
        (f"echo 'sysctl -w {KEY}=7\n' | sh", [(1, "")]),
        (f"{{\necho 'sysctl -w {KEY}=7'\n}} | sh", [(2, "")]),
        (f"cat <<EOF\nsysctl -w {KEY}=7\nEOF\nps | while read x; do echo $x; done | sort", [(2, "")]),
        (f"warn() {{ echo $1; }}\nwarn 'sysctl -w {KEY}=7'", [(2, "")]),
        ("for f in /proc/sys/vm/max*; do\necho 7 > $f\ndone", [(1, "")]),
        ("for f in /proc/sys/vm/max*; do\ncat $f\ndone", []),
        (f"echo 'sysctl -w {KEY}=7' \\\n | sh", [(1, "7")]),
        (f"LOG=/var/log/x\necho '{KEY} set' >> $LOG", []),
        ("S=/proc/sys/vm\necho 7 > $S/max_map_count", [(2, "")]),
        ("cd /proc\ncd sys/vm\necho 7 > max_map_count", [(3, "")]),
        ("cd /proc\ncat x\necho 7 > max_map_count", []),
        ("cd sys/vm\necho 7 > max_map_count", []),
        ("#!/usr/bin/python3\nos.chdir('/proc/sys/' + X)\nopen('max_map_count', 'w')", [(3, "")]),
        ("#!/usr/bin/python3\np = Path('/proc/sys')\n(p / 'vm' / 'max_map_count').write_text('7')", [(3, "")]),
    ],
)  # fmt: skip
def test_what_goes_over_lines(text: str, expected: list[tuple[int, str]]) -> None:
    writes = find_script_writes(KEY, {RC: text})
    assert [(write.at.line, write.at.value) for write in writes] == expected


CHANGES = (
    "cat /opt/x > /run/sysctl.d/x.conf",
    "curl -s http://x/y | tee /usr/lib/sysctl.d/x.conf",
    "tee /usr/local/lib/sysctl.d/x.conf < /opt/x",
    "dd if=/opt/x of=/lib/sysctl.d/x.conf",
    "git -C /etc/sysctl.d pull",
    "rm -f /etc/sysctl.d/high.conf",
    "awk -i inplace '{print}' /etc/sysctl.conf",
    "F=/etc/sysctl.d/a.conf; sed -i s/2/7/ $F",
    'F="/etc/sysctl.d/a.conf"\nif true; then\n  sed -i s/2/7/ "${F}"\nfi',
    "for f in /etc/sysctl.d/*.conf; do sed -i s/2/7/ $f; done",
    "for f in /etc/sysctl.d/*.conf\ndo\n  mv $f $f.old\ndone",
    "cd /etc/sysctl.d && mv a.conf.new a.conf",
    "find /etc/sysctl.d -name '*.conf' -exec sed -i s/2/7/ {} +",
    "echo $LINE >> /etc/sysctl.d/a.conf",
    "printf '%s' \"$(cat /opt/x)\" > /run/sysctl.d/a.conf",
    "cp /opt/x /run/sysctl.d/x.conf",
    "mv /run/x.conf \\\n  /etc/sysctl.d/",
    "render --to /etc/sysctl.d/a.conf",
    "cd /etc/sysctl.d\nfor f in *; do sed -i s/2/7/ $f; done",
    "#!/bin/sh\nset -e\nif [ -f /opt/x ]; then cp /opt/x /etc/sysctl.d/x.conf; fi",
    "echo a | sudo tee -a /etc/sysctl.conf",
    "rsync -a /opt/sysctl.d/ /etc/sysctl.d",
    # Where an option or a redirection stands last, and other spellings of the folder.
    "cp /root/x.conf /etc/sysctl.d/ 2>/dev/null",
    'cp /root/x.conf "/etc/sysctl.d/" >/dev/null 2>&1',
    "cp -t /etc/sysctl.d /root/x.conf",
    "cp --target-directory=/etc/sysctl.d /root/x.conf",
    "install -D /root/x /etc/sysctl.d/x -m 644",
    "rsync -a /root/x/ /etc/sysctl.d/ --delete",
    'a="$(mv /etc/sysctl.d/x /tmp)"',
    "rm -f /etc/sysctl.*",
    "rm /etc//sysctl.d/x",
    "rm '/etc'/sysctl?d/x",
    "cd /etc; rm -f sysctl.d/10-x.conf",
    "find /etc -name '*sysctl*' -delete",
    # A text that is not plain, or empties a file.
    "cat > /etc/sysctl.d/99.conf <<EOF\n$(cat /root/x)\nEOF",
    "cat > /etc/sysctl.d/99.conf <<EOF\n$X\nEOF",
    "echo > /etc/sysctl.conf",
    "echo '' > /etc/sysctl.d/90-x.conf",
    "touch /etc/sysctl.d/90-x.conf",
    # Variables, and what reads names one by one.
    "D=/etc; rm $D/sysctl.d/10.conf",
    "D=/etc/sysctl.d\nE=$D/10.conf\nrm $E",
    "D=sysctl.d\nrm /etc/$D/10.conf",
    "F=/etc/sysctl.conf\nsed -i s/a/b/ ${F:?}",
    "F=/etc/sysctl.conf G=1\nsed -i s/a/b/ $F",
    ": ${F:=/etc/sysctl.conf}\nsed -i s/a/b/ $F",
    "D=/etc/sysctl.d rm -f /etc/sysctl.d/x",
    "ls /etc/sysctl.d/* | while read f; do rm $f; done",
    "for f in `ls /etc/sysctl.d`; do rm -f $f; done",
    "sort -o /etc/sysctl.conf /root/x",
    "sed -n 's/a/b/w /etc/sysctl.conf' /root/x",
    "sysctl-apply /etc/sysctl.d/99-saved.conf",
)
LEAVES = (
    "cp /etc/sysctl.d/a.conf /root/",
    "cp -a /etc/sysctl.d /root/backup",
    "cat /etc/sysctl.d/*.conf > /var/log/sysctls",
    "if [ -f /etc/sysctl.d/a.conf ]; then\n  logger there\nfi",
    "test -d /etc/sysctl.d || mkdir -p /etc/sysctl.d",
    "chmod 644 /etc/sysctl.d/a.conf",
    "# sed -i s/2/7/ /etc/sysctl.d/a.conf",
    "true # sed -i s/2/7/ /etc/sysctl.d/a.conf",
    "sed -n 1p /etc/sysctl.d/a.conf",
    "grep -q x /etc/sysctl.conf && logger there",
    "md5=$(cat /etc/sysctl.d/a.conf | wc -c)",
    "F=/etc/sysctl.d/a.conf\n[ -e $F ] || exit 0",
    "echo 'see /etc/sysctl.d/a.conf'",
    "echo vm.swappiness=1 > /etc/sysctl.d/90-a.conf",
    "cat > /run/sysctl.d/a.conf <<EOF\nvm.swappiness=1\nEOF",
    "sed -i s/2/7/ /etc/motd",
    "find /etc/sysctl.d -type f -print",
    "md5sum /etc/sysctl.conf",
    "sed s/a/b/ /etc/sysctl.conf",
    "awk '{print}' /etc/sysctl.conf",
    "restorecon -R /etc/sysctl.d",
    "while read l; do\n:\ndone < /etc/sysctl.conf",
    "tar czf /root/b.tgz /etc/sysctl.d",
    "cp /etc/sysctl.conf /root/ 2>/dev/null",
)


@pytest.mark.parametrize(
    ("text", "is_known"), [(a, False) for a in CHANGES] + [(a, True) for a in LEAVES]
)
def test_files_that_a_script_changes_may_hold_anything(text: str, is_known: bool) -> None:
    """Before it has them read; what it says itself is judged by the keys that it names."""
    for load in ("sysctl --system", "systemctl restart systemd-sysctl"):
        writes = list(find_script_writes(KEY, {RC: f"{text}\n{load}\n"}))
        assert [(one.at.text, one.loads) for one in writes] == [(load, is_known)]


def test_what_stands_around_a_value() -> None:
    (write,) = find_script_writes(KEY, {RC: f"true; echo 7 > {FILE}; true"})
    assert (write.before, write.after) == ("echo ", f" > {FILE}")


def test_a_line_that_runs_what_could_not_be_read_may_set_any_key() -> None:
    writes = find_script_writes(KEY, {RC: mark("true\n/opt/x\n/opt/y", "", unread={2})})
    assert [(one.at.line, one.at.value) for one in writes] == [(2, "")]


def test_a_file_that_root_may_not_open_may_be_read_with_anything() -> None:
    texts = {RC: "sysctl -p /home/u/x", "/home/u/x": mark("", "", doubts={0})}
    assert [(one.at.path, one.loads) for one in find_script_writes(KEY, texts)] == [(RC, False)]


@pytest.mark.parametrize(
    ("lines", "at"),
    [
        ("ExecStart=/bin/cp -t /etc/sysctl.d /root/x", 4),
        ("StandardOutput=file:/etc/sysctl.d/x.conf\nExecStart=/bin/cat /root/x", 4),
        ("Environment=F=/etc/sysctl.d/x\nExecStart=/bin/rm $F", 5),
        ("WorkingDirectory=/etc/sysctl.d\nExecStart=/bin/rm x", 4),
        ("ExecStart=/bin/touch /etc/sysctl.d/x", 4),
        ("ExecStart=/usr/bin/find /etc/sysctl.d", None),
        ("ReadWritePaths=/etc/sysctl.d\nExecStart=/bin/true", None),
    ],
)
def test_a_unit_before_the_files_may_change_them(lines: str, at: int | None) -> None:
    unit = Script(f"[Unit]\nDefaultDependencies=no\n[Service]\n{lines}\n")
    unit.early = True
    found = [one.at for one in find_script_writes(KEY, {f"{UNIT}/a.service": unit})]
    assert [one.line for one in found] == ([at] if at else [])
    assert [one.text for one in found] == [unit.split("\n")[one.line - 1] for one in found]


def test_of_more_commands_than_anybody_writes_none_is_judged() -> None:
    lines = [f"sysctl -w vm.swappiness={number}" for number in range(10_001)]
    (write,) = find_script_writes(KEY, {RC: "\n".join(["true", *lines])})
    assert (write.at.line, write.at.value, write.loads) == (2, "", False)
    assert not list(find_script_writes(KEY, {RC: "\n".join(lines[1:])}))
    assert not list(find_script_writes(KEY, {RC: "\n".join(f"#{one}" for one in lines)}))


def test_what_a_very_long_line_sets_is_not_known() -> None:
    line = f"sysctl -w {KEY}=5 {'-q ' * 2000}"
    assert [one.at.value for one in find_script_writes(KEY, {RC: line[:4096]})] == ["5"]
    assert [one.at.value for one in find_script_writes(KEY, {RC: line[:4097]})] == [""]


def test_a_very_long_line_with_a_variable_may_set_any_key() -> None:
    for length, values in ((4096, []), (4097, [""])):
        line = "sysctl -n $X ".ljust(length, "x")
        assert [one.at.value for one in find_script_writes(KEY, {RC: line})] == values


def test_a_line_that_does_not_name_a_key_is_not_read_word_by_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def find(line: str, _patterns: object) -> Generator[Any, None, str]:
        read.append(line)
        yield from ()
        return line

    monkeypatch.setattr(boot_scripts, "_find_plain", find)
    setter = f"sysctl -w {KEY}=5"
    assert len(list(find_script_writes(KEY, {RC: f"cat cat cat\n{setter}\necho a b c"}))) == 1
    assert read == [setter]


@pytest.mark.parametrize(
    ("line", "loads"),
    [
        ("sysctl -p", True),
        ("sysctl -q --system", True),
        ("/sbin/sysctl --load=/etc/x.conf", True),
        ("sysctl -ep /etc/sysctl.d/x.conf", True),
        ("systemctl restart systemd-sysctl.service", True),
        ("systemctl try-restart systemd-sysctl", True),
        ("systemctl start systemd-sysctl", False),  # It is active, and nothing is done.
        ("/usr/lib/systemd/systemd-sysctl", True),
        ("/usr/lib/systemd/systemd-sysctl; true", True),
        ("/lib/systemd/systemd-sysctl --strict >/dev/null 2>&1", True),
        ("service systemd-sysctl restart", True),
        ("service systemd-sysctl stop", False),
        ("ls /usr/lib/systemd/systemd-sysctl.d", False),
        ("sysctl -a | grep -p x", False),
        ("sysctl vm.swappiness", False),
    ],
)
def test_lines_that_have_files_read(line: str, loads: bool) -> None:
    assert [write.loads for write in find_script_writes(KEY, {RC: line})] == [True] * loads


def test_files_that_lines_have_read() -> None:
    low, other = "/srv/low.conf", "/srv/other.conf"
    script = f"#!/bin/sh\nsysctl -q -p {low} '{other}' > /dev/null\n"
    texts = {RC: script, low: f"{KEY} = 9\n{KEY}= 7\n", other: "fs.nr_open = 5\n"}
    assert find_loaded(RC, script) == [low, other]
    assert find_loaded(RC, "sysctl --load=/a; sysctl -p; sysctl -p $F; sysctl -a /b") == ["/a"]
    (write,) = find_script_writes(KEY, texts)
    assert (write.at.place, write.at.value) == (f"{low}:2", "7")
    assert f"{write.before}{write.at.value}{write.after}" == f"{KEY}= 7"
    assert [one.loads for one in find_script_writes(KEY, {RC: script})] == [True]


def test_scripts_that_lines_call() -> None:
    text = "[Service]\nEnvironmentFile=/etc/x\nExecStart=/usr/local/bin/tune --fast /usr/bin/x\n"
    assert find_called(UNIT, text) == ["/usr/local/bin/tune", "/usr/bin/x"]
    assert find_called(RC, "tune < /dev/null > /run/x; ./usr/bin/x") == []
    assert find_called(RC, "/opt/a/b.sh; sh /srv/c") == ["/opt/a/b.sh", "/srv/c"]


@pytest.mark.parametrize(
    "word",
    ['"/srv/my scripts/tune"', "'/srv/my scripts/tune'", "/srv/my\\ scripts/tune", "/srv/my\\x20scripts/tune"],
)  # fmt: skip
def test_a_path_with_a_blank_is_called_as_well(word: str) -> None:
    assert "/srv/my scripts/tune" in find_called(RC, f"sh {word} --fast")
    assert "/srv/my scripts/tune" in list_paths(f"# sh {word}")


@pytest.mark.parametrize(
    ("text", "globs"),
    [
        ("for one in /opt/tune/*; do sh $one; done", {"/opt/tune/*"}),
        ("for one in /opt/tune/*.sh /x; do . $one; done", {"/opt/tune/*.sh"}),
        ("for one in /opt/tune/x*.sh; do", {"/opt/tune/x*.sh"}),
        ("true\nfor one in /opt/tune/part-*\ndo sh $one; done", {"/opt/tune/part-*"}),
        ("sh /opt/tune/part-*", {"/opt/tune/part-*"}),
        ("for one in *.sh part-*; do sh $one; done", set()),
        ("rm -f /opt/tune/*.tmp", set()),
        ("echo /opt/tune/part-*", set()),
        ("case $1 in *) exit;; esac", set()),
    ],
)
def test_files_that_a_script_goes_through(text: str, globs: set[str]) -> None:
    assert find_globs(text) == globs


@pytest.mark.parametrize(
    ("text", "is_about"),
    [
        ("sysctl -w fs.nr_open=5", True),
        ('SYSCTL{fs/nr_open}="5"', True),
        ("echo 5 > /proc/sys/fs/nr_open", True),
        ("cd /proc\necho 5 > sys/fs/nr_open", True),
        ("echo 5 > /proc/self/oom_score_adj", False),
        ("cat /sys/class/net/eth0/mtu", False),
        ("cd /proc; ls", False),
        ("cd /proc/sys; ls", True),
        ("nothing", False),
    ],
)
def test_scripts_that_may_set_some_sysctl(text: str, is_about: bool) -> None:
    assert boot_scripts.is_about_sysctls(text) is is_about


def test_a_value_of_several_numbers_is_whole_in_tmpfiles() -> None:
    value = "4096 87380 6291456"
    line = f"w /proc/sys/net/ipv4/tcp_rmem - - - - {value}"
    writes = find_script_writes("net.ipv4.tcp_rmem", {TMPFILES: f"{line}\n"})
    assert [(one.at.line, one.at.value) for one in writes] == [(1, value)]
