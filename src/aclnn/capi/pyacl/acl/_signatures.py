"""How operators are called. Written by `make gen`; do not edit."""

from __future__ import annotations

SIGNATURES = {
    "aclnnEluBackward": "ppppbpp",
    "aclnnElu": "ppppp",
    "aclnnInplaceElu": "pppp",
    "aclnnConvolutionBackward": "pppppppbpipcppp",
    "aclnnConvolution": "ppppppbpqpc",
    "aclnnConvTbcBackward": "ppppqcppp",
    "aclnnConvTbc": "pppqpc",
    "aclnnLstmBackward": "ppppppppppppppbqdbbbppppp",
    "aclnnLSTM": "ppppbqdbbbpppppppppp",
    "aclnnThnnFusedLstmCellBackward": "pppppbppp",
    "aclnnThnnFusedLstmCell": "pppppppp",
}
