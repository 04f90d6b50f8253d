from ssdrig.cli import main

raise SystemExit(main())
